import { createHmac } from 'node:crypto';

/** The secret of every application that tests start. */
export const TEST_SECRET = 'a secret of the tests that is long enough';

/** A token that the tests' applications accept, for an hour. */
export function tokenOf(userId: string, role?: string): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const now = Math.floor(Date.now() / 1_000);
  const claims = { sub: userId, iat: now, exp: now + 3_600, ...(role === undefined ? {} : { role }) };
  const head = `${part({ alg: 'HS256', typ: 'JWT' })}.${part(claims)}`;
  return `${head}.${createHmac('sha256', TEST_SECRET).update(head).digest('base64url')}`;
}

export const ADMIN = tokenOf('1', 'admin');
