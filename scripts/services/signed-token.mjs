import { createHmac } from 'node:crypto';

/**
 * A JWT signed with HS256: sub, role where given, iat, exp.
 * @param {{ secret: string, user: string, role?: string | undefined, lifeSeconds?: number, nowMs?: number }} claims
 * @returns {string}
 */
export function signToken({ secret, user, role, lifeSeconds = 24 * 3600, nowMs = Date.now() }) {
  const iat = Math.floor(nowMs / 1000);
  const payload = { sub: user, ...(role === undefined ? {} : { role }), iat, exp: iat + lifeSeconds };
  const head = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(payload)}`;
  return `${head}.${createHmac('sha256', secret).update(head).digest('base64url')}`;
}

/** @param {object} value */
function encode(value) {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

/**
 * Whether the text is an id as everywhere in this system: a decimal number 1..9223372036854775807 without sign, blanks or leading zeros.
 * @param {string} text
 */
export function isUserId(text) {
  return /^[1-9]\d{0,18}$/.test(text) && BigInt(text) <= 9223372036854775807n;
}
