import { createVerifier, TokenError } from 'fast-jwt';
import { createRemoteJWKSet, errors, jwtVerify, type JWTPayload } from 'jose';
import type { AuthSettings } from '#config';
import { isId } from '#http';
import { Hs256 } from './hs256.js';
import { type Identity, type Role, ROLES } from './identity.js';
import { invalidTokens, validTokens } from './metrics.js';
import { RecentEntries } from './recent-entries.js';

/** Clocks of issuer and service may differ by this much (contract). */
const TOLERANCE_MS = 5000;
const MAX_REMEMBERED_TOKENS = 20_000;
/** Longer tokens are checked every time, so that the memory of remembered ones stays bounded. */
const MAX_REMEMBERED_CHARS = 2048;
const JWKS_TIMEOUT_MS = 2000;
const JWKS_MAX_AGE_MS = 600_000;
const JWKS_COOLDOWN_MS = 30_000;

/** Checks a token's signature and times and gives its claims, or undefined where it is not valid. Throws only on trouble (keys cannot be fetched). */
type ClaimsCheck = (token: string) => Claims | undefined | Promise<Claims | undefined>;
interface Claims {
  readonly sub?: unknown;
  readonly role?: unknown;
  readonly exp?: unknown;
}
interface PlainClaims extends Claims {
  readonly nbf?: unknown;
  readonly iat?: unknown;
}
interface Remembered {
  readonly identity: Identity;
  readonly validUntilMs: number;
}

/** The keys of the issuer cannot be fetched: nobody can be told apart for the moment. Answered 503. */
export class KeysUnavailableError extends Error {
  override readonly name = 'KeysUnavailableError';
  readonly code = 'KEYS_UNAVAILABLE';
}

/**
 * Turns a token into an identity. Valid tokens are remembered (bounded, those not seen for long go first) until they expire, so that a buyer who asks
 * again costs one look-up. With a shared secret every answer is synchronous.
 */
export class TokenVerifier {
  private readonly remembered = new RecentEntries<Remembered>(MAX_REMEMBERED_TOKENS);
  private readonly check: ClaimsCheck;

  constructor(settings: AuthSettings) {
    this.check = claimsCheck(settings);
  }

  /** The identity, or undefined where the token is not valid. Rejects with `KeysUnavailableError` where the issuer's keys cannot be fetched. */
  verify(token: string): Identity | undefined | Promise<Identity | undefined> {
    const known = this.remembered.get(token);
    if (known !== undefined) {
      if (Date.now() < known.validUntilMs) return known.identity;
      this.remembered.delete(token);
      return undefined;
    }
    const claims = this.check(token);
    return claims instanceof Promise ? claims.then((late) => this.accept(token, late)) : this.accept(token, claims);
  }

  private accept(token: string, claims: Claims | undefined): Identity | undefined {
    const { sub, exp, role } = claims ?? {};
    const isValid = isId(sub) && typeof exp === 'number';
    (isValid ? validTokens : invalidTokens).inc();
    if (!isValid) return undefined;
    const identity: Identity = { userId: sub, role: ROLES.includes(role as Role) ? (role as Role) : undefined };
    const validUntilMs = exp * 1000 + TOLERANCE_MS;
    if (token.length <= MAX_REMEMBERED_CHARS) this.remembered.set(token, { identity, validUntilMs });
    return identity;
  }
}

function claimsCheck({ jwtSecret, jwksUrl }: AuthSettings): ClaimsCheck {
  if (jwtSecret !== undefined) return secretCheck(jwtSecret);
  if (jwksUrl !== undefined) return jwksCheck(jwksUrl);
  throw new Error('neither a secret nor a JWKS address is set');
}

function secretCheck(jwtSecret: string): ClaimsCheck {
  const verify = createVerifier({
    key: jwtSecret,
    algorithms: ['HS256'],
    requiredClaims: ['exp', 'sub'],
    clockTolerance: TOLERANCE_MS,
    cache: false,
  });
  const checkPlain = plainCheck(jwtSecret);
  return (token) => {
    const plain = checkPlain(token);
    if (plain !== undefined) return plain;
    try {
      return verify(token) as Claims;
    } catch (error) {
      if (error instanceof TokenError) return undefined;
      throw error;
    }
  };
}

/** The headers that issuers write: HS256 and nothing that asks for further rules. */
const PLAIN_HEADERS: ReadonlySet<string> = new Set(
  [{ alg: 'HS256', typ: 'JWT' }, { typ: 'JWT', alg: 'HS256' }, { alg: 'HS256' }].map((header) =>
    Buffer.from(JSON.stringify(header)).toString('base64url'),
  ),
);

/**
 * Accepts plain tokens, the common case, at a third of the price: known header, good signature, times in range. Whatever it does not accept the
 * library looks at: a refusal is never its own.
 */
function plainCheck(jwtSecret: string): (token: string) => Claims | undefined {
  const signature = new Hs256(jwtSecret);
  return (token) => {
    const headerEnd = token.indexOf('.');
    const claimsEnd = token.lastIndexOf('.');
    if (claimsEnd <= headerEnd || !PLAIN_HEADERS.has(token.slice(0, headerEnd))) return undefined;
    if (!signature.signs(token.slice(0, claimsEnd), token.slice(claimsEnd + 1))) return undefined;
    const claims = objectIn(Buffer.from(token.slice(headerEnd + 1, claimsEnd), 'base64url').toString());
    if (claims === undefined || typeof claims.exp !== 'number' || typeof claims.sub !== 'string') return undefined;
    if (claims.nbf !== undefined || (claims.iat !== undefined && typeof claims.iat !== 'number')) return undefined;
    return Date.now() < claims.exp * 1000 ? claims : undefined;
  };
}

function objectIn(text: string): PlainClaims | undefined {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function jwksCheck(jwksUrl: string): ClaimsCheck {
  const keys = createRemoteJWKSet(new URL(jwksUrl), {
    timeoutDuration: JWKS_TIMEOUT_MS,
    cacheMaxAge: JWKS_MAX_AGE_MS,
    cooldownDuration: JWKS_COOLDOWN_MS,
  });
  const options = {
    algorithms: ['RS256', 'ES256', 'EdDSA', 'Ed25519'],
    requiredClaims: ['exp', 'sub'],
    clockTolerance: TOLERANCE_MS / 1000,
  };
  return async (token): Promise<JWTPayload | undefined> => {
    try {
      return (await jwtVerify(token, keys, options)).payload;
    } catch (error) {
      if (isTokensFault(error)) return undefined;
      throw new KeysUnavailableError('the issuer’s keys cannot be fetched', { cause: error });
    }
  };
}

/** Errors that the token itself causes; all others (address away, no key set there) say nothing about the token. */
function isTokensFault(error: unknown): boolean {
  return (
    error instanceof errors.JOSEError &&
    !(error instanceof errors.JWKSTimeout) &&
    !(error instanceof errors.JWKSInvalid) &&
    error.code !== 'ERR_JOSE_GENERIC'
  );
}
