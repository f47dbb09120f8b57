import { createHash } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import { Database, DatabaseUnavailableError, type Session } from '#database';
import { invalidArgument, ProblemException } from '#http';

export const IDEMPOTENCY_KEY_MAX_LENGTH = 255;
/** For this long a key stands for its first call; afterwards it may be used anew. */
export const IDEMPOTENCY_KEY_LIFE_HOURS = 24;
const SWEEP_PAUSE_MS = 60_000;
const SWEEP_ROWS = 1_000;
const DIGEST_LENGTH = 32;
const PRINTABLE = /^[\x21-\x7e]+$/;

/** Times of a body may have moved with the clock for this long: a client that repeats its call computes "from now on" anew. */
const LONGEST_REPEAT_MS = 60_000;
const CLOCK_TOLERANCE_MS = 1_000;

/** A call that its caller named by an Idempotency-Key. `scope`: who calls; `requestHash`: route and body, then the times of the body. */
export interface NamedCall {
  readonly scope: string;
  readonly key: string;
  readonly requestHash: string;
}

/** An answer fit to be given again. `body` is JSON. */
export interface KeptAnswer<Body> {
  readonly status: number;
  readonly body: Body;
}

/**
 * The call that an Idempotency-Key header names; undefined without one. `instants` are the times of the body (Unix milliseconds), which are
 * compared apart from the rest: see `isSameCall`. Throws INVALID_ARGUMENT for a key that breaks the format.
 */
export function namedCall(
  key: string | undefined,
  caller: string,
  route: string,
  body: Readonly<Record<string, unknown>>,
  instants: readonly number[] = [],
): NamedCall | undefined {
  if (key === undefined) return undefined;
  if (key.length > IDEMPOTENCY_KEY_MAX_LENGTH || !PRINTABLE.test(key)) {
    const detail = `Idempotency-Key must be 1 to ${IDEMPOTENCY_KEY_MAX_LENGTH} visible ASCII characters`;
    throw invalidArgument({ header: 'Idempotency-Key', detail });
  }
  const members = Object.keys(body).sort();
  const canonical = JSON.stringify([route, members.map((member) => [member, body[member]])]);
  const digest = createHash('sha256').update(canonical).digest('hex').slice(0, DIGEST_LENGTH);
  return { scope: `user:${caller}`, key, requestHash: [digest, ...instants.map((ms) => ms.toString(36))].join('.') };
}

/**
 * Whether two request hashes stand for one call: the same route and body, and times that are the same, or that moved forward by no more than the
 * clock did between the calls (up to a minute).
 */
export function isSameCall(first: string, repeated: string, elapsedMs: number): boolean {
  const [digest, ...instants] = first.split('.');
  const [otherDigest, ...otherInstants] = repeated.split('.');
  if (digest !== otherDigest || instants.length !== otherInstants.length) return false;
  const mostMs = Math.min(Math.max(elapsedMs, 0), LONGEST_REPEAT_MS) + CLOCK_TOLERANCE_MS;
  return instants.every((instant, index) => {
    const movedMs = parseInt(otherInstants[index] ?? '', 36) - parseInt(instant, 36);
    return movedMs >= -CLOCK_TOLERANCE_MS && movedMs <= mostMs;
  });
}

const CLAIM = {
  name: 'idempotency_claim',
  text: `INSERT INTO tb_idempotency_key AS k (scope, idempotency_key, request_hash) VALUES ($1, $2, $3)
         ON CONFLICT (scope, idempotency_key) DO UPDATE
           SET request_hash = excluded.request_hash, response_status = NULL, response_body = NULL, create_time = now()
           WHERE k.create_time < now() - make_interval(hours => $4::integer)
         RETURNING 1 AS claimed`,
};
const READ = {
  name: 'idempotency_read',
  text: `SELECT request_hash, response_status, response_body,
           (extract(epoch FROM clock_timestamp() - create_time) * 1000)::float8 AS elapsed_ms FROM tb_idempotency_key
         WHERE scope = $1 AND idempotency_key = $2`,
};
const KEEP = {
  name: 'idempotency_keep',
  text: `UPDATE tb_idempotency_key SET response_status = $3, response_body = $4::jsonb
         WHERE scope = $1 AND idempotency_key = $2 RETURNING response_body`,
};
const SWEEP = {
  name: 'idempotency_sweep',
  text: `DELETE FROM tb_idempotency_key WHERE ctid = ANY (ARRAY(
           SELECT ctid FROM tb_idempotency_key WHERE create_time < now() - make_interval(hours => $1::integer)
           ORDER BY create_time LIMIT $2 FOR UPDATE SKIP LOCKED))`,
};

interface KeyRow {
  readonly request_hash: string;
  readonly response_status: number | null;
  readonly response_body: unknown;
  readonly elapsed_ms: number;
}

/**
 * Keeps the answers of named calls. The key is written in the transaction of the effect: both stand, or neither. A second call with the
 * key waits for the first transaction, then gets its answer.
 */
@Injectable()
export class IdempotencyKeyRepository {
  private readonly logger = new Logger(IdempotencyKeyRepository.name);
  private sweptAtMs = 0;

  constructor(private readonly database: Database) {}

  /**
   * Runs `effect` unless the call was answered before. An error of `effect` leaves no trace of the key (the caller's transaction is rolled
   * back by it). Throws IDEMPOTENCY_KEY_REUSED for another call under the same key, IDEMPOTENCY_KEY_IN_USE where the first one
   * still runs after the lock timeout.
   */
  async once<Body>(
    session: Session,
    call: NamedCall | undefined,
    effect: () => Promise<KeptAnswer<Body>>,
  ): Promise<KeptAnswer<Body> & { readonly replayed: boolean }> {
    if (call === undefined) return { ...(await effect()), replayed: false };
    if (!(await this.claim(session, call))) return { ...(await this.kept<Body>(session, call)), replayed: true };
    const answer = await effect();
    const [row] = await session.query<{ response_body: Body }>(KEEP, [
      call.scope,
      call.key,
      answer.status,
      JSON.stringify(answer.body),
    ]);
    if (row === undefined) throw new Error('a claimed idempotency key has vanished');
    this.sweepSoon();
    return { status: answer.status, body: row.response_body, replayed: false };
  }

  private async claim(session: Session, call: NamedCall): Promise<boolean> {
    const values = [call.scope, call.key, call.requestHash, IDEMPOTENCY_KEY_LIFE_HOURS];
    try {
      return (await session.query(CLAIM, values)).length === 1;
    } catch (error) {
      if (error instanceof DatabaseUnavailableError && error.kind === 'LOCK_TIMEOUT')
        throw new ProblemException('IDEMPOTENCY_KEY_IN_USE', {}, { cause: error });
      throw error;
    }
  }

  private async kept<Body>(session: Session, call: NamedCall): Promise<KeptAnswer<Body>> {
    const [row] = await session.query<KeyRow>(READ, [call.scope, call.key]);
    if (row !== undefined && !isSameCall(row.request_hash, call.requestHash, row.elapsed_ms)) {
      throw new ProblemException('IDEMPOTENCY_KEY_REUSED');
    }
    // No row: it was swept between the two statements. No status: written by another hand. Both pass with the next try.
    if (row === undefined || row.response_status === null) throw new ProblemException('IDEMPOTENCY_KEY_IN_USE');
    return { status: row.response_status, body: row.response_body as Body };
  }

  /** Removes what has outlived its life, at most once a minute and a bounded number of rows. */
  private sweepSoon(): void {
    const nowMs = performance.now();
    if (this.sweptAtMs !== 0 && nowMs - this.sweptAtMs < SWEEP_PAUSE_MS) return;
    this.sweptAtMs = nowMs;
    this.database.query(SWEEP, [IDEMPOTENCY_KEY_LIFE_HOURS, SWEEP_ROWS]).catch((error: unknown) => {
      this.logger.warn(`old idempotency keys stay for now: ${error instanceof Error ? error.message : String(error)}`);
    });
  }
}
