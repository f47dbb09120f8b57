/**
 * What an error of the database means for the work that met it.
 * PASSING: nothing is wrong with the work; try it again later, however often.
 * LOCK_TIMEOUT: passing, and the cause is one row or lock that somebody else holds: work on other rows may go on.
 * FINAL: the data itself was refused (a constraint, a trigger, a value out of range): the same work fails again.
 */
export type DatabaseErrorKind = 'PASSING' | 'LOCK_TIMEOUT' | 'FINAL';

/**
 * The database is away, busy or in a passing state. Nothing is known to be wrong with the work; after a lost connection at COMMIT it may even
 * have been done. `sqlState` is PostgreSQL's code where the server gave one.
 */
export class DatabaseUnavailableError extends Error {
  /** The HTTP side answers codes that end in UNAVAILABLE with 503. */
  readonly code = 'DATABASE_UNAVAILABLE';

  constructor(
    message: string,
    readonly kind: 'PASSING' | 'LOCK_TIMEOUT' = 'PASSING',
    readonly sqlState?: string,
    options?: { cause?: unknown },
  ) {
    super(message, options);
    this.name = 'DatabaseUnavailableError';
  }
}

/** COMMIT was sent, and no answer came: the transaction may stand. */
export class CommitUnknownError extends DatabaseUnavailableError {
  readonly mayHaveHadEffect = true;

  constructor(cause: DatabaseUnavailableError) {
    super(`no answer to COMMIT: ${cause.message}`, cause.kind, cause.sqlState, { cause });
    this.name = 'CommitUnknownError';
  }
}

/** COMMIT was answered with ROLLBACK: an earlier statement had failed, and nothing of the transaction was kept. */
export class TransactionRolledBackError extends Error {
  readonly code = 'TRANSACTION_ROLLED_BACK';

  constructor() {
    super('COMMIT was answered with ROLLBACK: the transaction had failed before, nothing was stored');
    this.name = 'TransactionRolledBackError';
  }
}

/** SQLSTATE classes in which the data, not the server, is at fault. All other classes are states of the server, the session or the schema. */
const FINAL_CLASSES = new Set([
  '09', // triggered action exception
  '21', // cardinality violation
  '22', // data exception
  '23', // integrity constraint violation
  '27', // triggered data change violation
  '38', // external routine exception
  '39', // external routine invocation exception
  '44', // WITH CHECK OPTION violation
  '54', // program limit exceeded
  'P0', // PL/pgSQL: raised by a trigger
]);

/** Classes that PostgreSQL itself uses for states of server, session, schema or configuration: they pass, or are mended by an operator. */
const PASSING_CLASSES = new Set([
  '08', // connection exception
  '0A', // feature not supported: a cached plan after a schema change
  '0B', // invalid transaction initiation
  '25', // invalid transaction state: 25P02, read-only
  '26', // invalid statement name: a pooler lost the prepared statement
  '28', // invalid authorization
  '2D', // invalid transaction termination
  '3B', // savepoint exception
  '3D', // invalid catalog name
  '3F', // invalid schema name
  '40', // serialization failure, deadlock
  '42', // access rule or schema: rights withdrawn, a table renamed
  '53', // insufficient resources
  '55', // object not in prerequisite state
  '57', // operator intervention: shutdown, statement timeout
  '58', // system error
  '72', // snapshot failure
  'F0', // configuration file error
  'XX', // internal error
]);

const LOCK_NOT_AVAILABLE = '55P03';

/**
 * Sorts an error. An error without SQLSTATE (a lost connection, a deadline, a defect of ours) is PASSING: an order is never condemned by it.
 * A SQLSTATE that PostgreSQL does not know was raised by a trigger with a code of its own: FINAL.
 */
export function classifyDatabaseError(error: unknown): DatabaseErrorKind {
  if (error instanceof DatabaseUnavailableError) return error.kind;
  const sqlState = sqlStateOf(error);
  if (sqlState === undefined) return 'PASSING';
  if (sqlState === LOCK_NOT_AVAILABLE) return 'LOCK_TIMEOUT';
  const sqlClass = sqlState.slice(0, 2);
  if (FINAL_CLASSES.has(sqlClass)) return 'FINAL';
  return PASSING_CLASSES.has(sqlClass) ? 'PASSING' : 'FINAL';
}

/** PostgreSQL's five-character code of an error, also where TypeORM wrapped it; undefined where the server gave none. */
export function sqlStateOf(error: unknown): string | undefined {
  if (error instanceof DatabaseUnavailableError) return error.sqlState;
  for (const candidate of [error, (error as { driverError?: unknown } | null)?.driverError]) {
    const code = (candidate as { code?: unknown } | null | undefined)?.code;
    // Operating system codes (ECONNREFUSED, EPIPE) are no SQLSTATE; the severity tells a server's error from a five-letter errno.
    if (typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && hasSeverity(candidate)) return code;
  }
  return undefined;
}

function hasSeverity(error: unknown): boolean {
  return typeof (error as { severity?: unknown }).severity === 'string';
}

/** Whether the connection or the whole server is in doubt: no code at all, a connection exception, or a shutdown. */
export function doubtsConnection(error: unknown): boolean {
  const sqlState = sqlStateOf(error);
  return sqlState === undefined || sqlState.startsWith('08') || sqlState.startsWith('57P');
}

/**
 * For errors that a driver call threw: passing ones become `DatabaseUnavailableError` with the first one as cause; final ones are given back
 * as they are.
 */
export function toUnavailable(error: unknown): unknown {
  if (error instanceof DatabaseUnavailableError) return error;
  const kind = classifyDatabaseError(error);
  if (kind === 'FINAL') return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new DatabaseUnavailableError(`the database could not do it now: ${reason}`, kind, sqlStateOf(error), {
    cause: error,
  });
}
