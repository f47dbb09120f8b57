import type { PoolClient } from 'pg';
import { QueryFailedError, type EntityManager, type QueryRunner } from 'typeorm';
import {
  CommitUnknownError,
  DatabaseUnavailableError,
  doubtsConnection,
  toUnavailable,
  TransactionRolledBackError,
} from './database-error.js';
import { Session } from './session.js';

export interface TransactionOptions {
  /** SQL that travels with START TRANSACTION in the same round trip, each statement under a snapshot of its own. Takes no values. */
  readonly opening?: string;
}

export type TransactionWork<T> = (manager: EntityManager, session: Session) => Promise<T>;

/** Runs `work` on the runner's connection between START TRANSACTION and a COMMIT that is known to have committed. Does not release. */
export async function runTransaction<T>(
  runner: QueryRunner,
  work: TransactionWork<T>,
  options: TransactionOptions,
): Promise<T> {
  const client = await connect(runner);
  const session = new Session(client);
  try {
    await session.query(options.opening === undefined ? 'START TRANSACTION' : `START TRANSACTION; ${options.opening}`);
    markStarted(runner);
    const result = await work(runner.manager, session);
    // After an error inside the transaction COMMIT answers ROLLBACK without raising.
    const answer = await session.execute('COMMIT').catch((error: unknown) => {
      throw error instanceof DatabaseUnavailableError && doubtsConnection(error)
        ? new CommitUnknownError(error)
        : error;
    });
    if (answer.command !== 'COMMIT') throw new TransactionRolledBackError();
    return result;
  } catch (error) {
    await rollBack(client);
    throw error instanceof QueryFailedError ? toUnavailable(error) : error;
  }
}

/** The runner's connection from the pool, waiting no longer than the pool's limit. */
export async function connect(runner: QueryRunner): Promise<PoolClient> {
  try {
    return (await runner.connect()) as PoolClient;
  } catch (error) {
    throw toUnavailable(error);
  }
}

/** TypeORM must know of the transaction: else save() would open, and commit, one of its own on this connection. */
function markStarted(runner: QueryRunner): void {
  const state = runner as unknown as { isTransactionActive: boolean; transactionDepth: number };
  state.isTransactionActive = true;
  state.transactionDepth = 1;
}

async function rollBack(client: PoolClient): Promise<void> {
  try {
    if (client.getTransactionStatus() !== 'I') await client.query('ROLLBACK');
  } catch (error) {
    // A connection that cannot even roll back goes; the server ends its transaction with it.
    client.connection.stream.destroy(error as Error);
  }
}
