import type { Settings } from '#config';

/** Every limit of a connection, in milliseconds. All of them end before another consumer may claim the work in hand. */
export interface ConnectionPolicy {
  /** Longest wait for a row lock or an advisory lock. */
  readonly lockTimeoutMs: number;
  /** Longest run of one statement, ended by the server. */
  readonly statementTimeoutMs: number;
  /** Longest pause inside a transaction, ended by the server: a frozen process must not hold a hot row. */
  readonly idleInTransactionTimeoutMs: number;
  /** Longest wait for an answer, ended on this side: a frozen server or a cut link sends no error. */
  readonly answerDeadlineMs: number;
  /** An answer later than this makes the connector look, on another connection, whether the server still answers. */
  readonly suspectAfterMs: number;
  /** Longest wait for a connection: a new one, or a free one of the pool. */
  readonly connectTimeoutMs: number;
}

/** Derives the limits from the time after which a peer takes over pending work. */
export function connectionPolicy(claimMinIdleMs: number): ConnectionPolicy {
  const statementTimeoutMs = Math.min(10_000, Math.max(100, Math.floor(claimMinIdleMs / 3)));
  return {
    lockTimeoutMs: Math.min(1_000, Math.floor(statementTimeoutMs / 2)),
    statementTimeoutMs,
    idleInTransactionTimeoutMs: statementTimeoutMs,
    answerDeadlineMs: statementTimeoutMs + Math.min(1_000, Math.floor(statementTimeoutMs / 2)),
    suspectAfterMs: Math.min(1_500, statementTimeoutMs),
    connectTimeoutMs: 2_000,
  };
}

export type DatabaseSettings = Pick<Settings, 'database'> & { readonly consumer: { readonly claimMinIdleMs: number } };

/** Where the database is, in words that are fit for a log: no user, no password. */
export function describeDatabase(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined) return 'the database';
  return `PostgreSQL at ${parsed.host === '' ? 'a local socket' : parsed.host}${parsed.pathname}`;
}
