/** What an error of the driver or the server means for the call that met it. */
export interface RedisErrorClass {
  /** False: the call certainly never left this process. True: the server may have seen it. */
  readonly sent: boolean;
  /** True: the call certainly had no effect (never sent, or refused by the server at its start). */
  readonly refused: boolean;
  /** True: time or an operator heals it without a restart of ours; false: a defect (bad command, script error), or a key that another hand replaced. */
  readonly passing: boolean;
  /** The server's own word where it answered with an error: LOADING, OOM, NOPERM, WRONGTYPE, ERR, ... */
  readonly state?: string;
}

/** Server answers that refuse a command, or a script with a `#!lua` header, before it does anything, and that pass. */
const REFUSING_STATES = new Set([
  'LOADING',
  'OOM',
  'MISCONF',
  'READONLY',
  'BUSY',
  'NOPERM',
  'NOAUTH',
  'WRONGPASS',
  'CLUSTERDOWN',
  'MASTERDOWN',
  'NOREPLICAS',
  'NOSCRIPT',
  'MOVED',
  'ASK',
  'TRYAGAIN',
]);

const NEVER_SENT =
  /enableOfflineQueue options is false|None of startup nodes is available|Failed to refresh slots cache|Cluster is ended|ECONNREFUSED|ENOTFOUND|EAI_AGAIN/;
const LOST_CONNECTION =
  /Connection is closed|Command timed out|Socket timeout|Reached the max retries per request|aborted due to connection close|ECONNRESET|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|Too many Cluster redirections/;
/** A right that a script's caller lacks: 7.0 says ERR and the first text, later versions the second. */
const NO_RIGHT_IN_SCRIPT = /The user executing the script can't|ACL failure in script/;
const ERROR_WORD = /^-?([A-Z][A-Z0-9]*)(?: |$)/;
/** An error met inside a script comes wrapped on some servers: `ERR Error running script (...): @user_script:1: -OOM ...`. */
const WRAPPED_WORD =
  /(?:@user_script:\s*\d+:|Last error: (?:ReplyError: )?|Error running script[^:]*:)\s*-?([A-Z][A-Z0-9]+) /;

/** Sorts an error of a Redis call. Pure. */
export function classifyRedisError(error: unknown): RedisErrorClass {
  if (error instanceof RedisUnavailableError) return error.kind;
  const message = error instanceof Error ? error.message : String(error);
  const wrapped = WRAPPED_WORD.exec(message)?.[1];
  if (wrapped !== undefined && REFUSING_STATES.has(wrapped)) {
    // Inside a script earlier writes may stand; a redirection the driver gave up on had no effect.
    return { sent: true, refused: message.startsWith('Too many'), passing: true, state: wrapped };
  }
  if (NO_RIGHT_IN_SCRIPT.test(message)) return { sent: true, refused: false, passing: true, state: 'NOPERM' };
  if (LOST_CONNECTION.test(message)) return { sent: true, refused: false, passing: true };
  if (NEVER_SENT.test(message)) return { sent: false, refused: true, passing: true };
  const state = ERROR_WORD.exec(message)?.[1];
  if (state === undefined) return { sent: true, refused: false, passing: false };
  // A word from inside a script (Redis 7 names the place) says nothing about what the script did before.
  const inScript = message.includes('on @user_script:');
  const refusing = REFUSING_STATES.has(state);
  // A key of another type is met before anything is written; the register's callers treat it as passing.
  return { sent: true, refused: (refusing || state === 'WRONGTYPE') && !inScript, passing: refusing, state };
}

/** Redis cannot do the call now: no connection, no answer in time, or a server state that passes. */
export class RedisUnavailableError extends Error {
  readonly code = 'REDIS_UNAVAILABLE';

  constructor(
    readonly kind: RedisErrorClass,
    cause: unknown,
  ) {
    super(`Redis is unavailable (${kind.state ?? (kind.sent ? 'no answer' : 'not connected')})`, { cause });
    this.name = 'RedisUnavailableError';
  }

  /** The server may have done what was asked. */
  get mayHaveHadEffect(): boolean {
    return this.kind.sent && !this.kind.refused;
  }
}

/** Waits for a call and turns passing trouble into a RedisUnavailableError; other errors come through as they are. */
export async function guardRedis<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    throw asRedisError(error);
  }
}

/** The error to throw for `error`: a RedisUnavailableError where it passes, else itself. */
export function asRedisError(error: unknown): unknown {
  if (error instanceof RedisUnavailableError) return error;
  const kind = classifyRedisError(error);
  return kind.passing ? new RedisUnavailableError(kind, error) : error;
}
