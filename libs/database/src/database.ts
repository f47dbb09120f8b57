import { Logger, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import type { QueryResultRow } from 'pg';
import { QueryFailedError, type DataSource, type EntityManager } from 'typeorm';
import {
  connectionPolicy,
  describeDatabase,
  type ConnectionPolicy,
  type DatabaseSettings,
} from './connection-policy.js';
import type { ConnectionWatch } from './connection-watch.js';
import { Connector } from './connector.js';
import {
  classifyDatabaseError,
  DatabaseUnavailableError,
  doubtsConnection,
  sqlStateOf,
  toUnavailable,
} from './database-error.js';
import { observeDatabase, transactionSeconds, transactionsTotal } from './metrics.js';
import { Session, type Statement } from './session.js';
import { connect, runTransaction, type TransactionOptions, type TransactionWork } from './transaction.js';

/** `reason` says why the database is away, without any secret. `sinceMs`: Unix milliseconds of the last change. */
export type DatabaseStatus =
  | { readonly ready: true; readonly sinceMs: number }
  | { readonly ready: false; readonly sinceMs: number; readonly reason: string };

/**
 * The way to PostgreSQL. Connects in the background and for as long as it takes, sets up the schema, and knows whether the server answers. While
 * it does not, every call fails at once with DatabaseUnavailableError; no call waits longer than the limits of `connectionPolicy`.
 */
export class Database implements OnModuleInit, OnApplicationShutdown {
  private readonly policy: ConnectionPolicy;
  private readonly connector: Connector;
  private readonly forget: () => boolean | void;

  constructor(
    private readonly dataSource: DataSource,
    settings: DatabaseSettings,
    private readonly watch: ConnectionWatch,
  ) {
    this.policy = connectionPolicy(settings.consumer.claimMinIdleMs);
    this.connector = new Connector(dataSource, watch, {
      url: settings.database.url,
      name: describeDatabase(settings.database.url),
      policy: this.policy,
      logger: new Logger(Database.name),
    });
    this.forget = observeDatabase({ isReady: () => this.isReady(), openConnections: () => watch.openConnections });
  }

  /** Starts connecting; returns at once. */
  onModuleInit(): void {
    this.connector.start();
  }

  /** Stops connecting and closes the pool, in bounded time also where the server is frozen. Twice, or before the start, is harmless. */
  async onApplicationShutdown(): Promise<void> {
    this.forget();
    await this.connector.stop();
  }

  /** Whether the server answered when last heard of, with the schema in place. */
  isReady(): boolean {
    return this.connector.status.ready;
  }

  status(): DatabaseStatus {
    return this.connector.status;
  }

  /** Resolves when the database is ready. @throws DatabaseUnavailableError with the reason after `timeoutMs`. */
  whenReady(timeoutMs: number): Promise<void> {
    return this.connector.whenReady(timeoutMs);
  }

  /** TypeORM's manager on the pool: each call takes a connection and gives it back. @throws DatabaseUnavailableError while away. */
  get manager(): EntityManager {
    this.assertReady();
    return this.dataSource.manager;
  }

  /** Runs reads with TypeORM; passing errors come out as DatabaseUnavailableError. Takes no connection of its own. */
  async run<T>(work: (manager: EntityManager) => Promise<T>): Promise<T> {
    try {
      return await work(this.manager);
    } catch (error) {
      throw this.heard(error instanceof QueryFailedError ? toUnavailable(error) : error);
    }
  }

  /** Runs one statement on a pooled connection. bigint columns come as decimal strings, timestamptz as Date. */
  query<Row extends QueryResultRow>(statement: string | Statement, values: readonly unknown[] = []): Promise<Row[]> {
    return this.withSession((session) => session.query<Row>(statement, values));
  }

  /** Lends one pooled connection to `work`, without a transaction. */
  async withSession<T>(work: (session: Session) => Promise<T>): Promise<T> {
    this.assertReady();
    const runner = this.dataSource.createQueryRunner();
    try {
      return await work(new Session(await connect(runner)));
    } catch (error) {
      throw this.heard(error);
    } finally {
      await runner.release();
    }
  }

  /**
   * Runs `work` in one READ COMMITTED transaction on one connection, and answers its result once COMMIT has really committed. Retries nothing.
   * `manager` and `session` both speak on that connection; work that uses another one inside can wait for itself.
   * @throws DatabaseUnavailableError for what passes (after a lost connection at COMMIT the outcome is unknown), the driver's error where the
   * data was refused, TransactionRolledBackError where `work` had swallowed an error, and whatever `work` throws.
   */
  async transaction<T>(work: TransactionWork<T>, options: TransactionOptions = {}): Promise<T> {
    this.assertReady();
    const end = transactionSeconds.startTimer();
    const runner = this.dataSource.createQueryRunner();
    try {
      const result = await runTransaction(runner, work, options);
      transactionsTotal.inc({ outcome: 'committed' });
      return result;
    } catch (error) {
      transactionsTotal.inc({ outcome: outcomeOf(error) });
      throw this.heard(error);
    } finally {
      await runner.release();
      end();
    }
  }

  /**
   * Resolves when the server answers within `timeoutMs`. A pool whose connections are all at work, and are answered, counts as an answer.
   * @throws DatabaseUnavailableError
   */
  async ping(timeoutMs: number): Promise<void> {
    const answersBefore = this.watch.answers;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<'LATE'>((resolve) => (timer = setTimeout(() => resolve('LATE'), timeoutMs)));
    const answer = this.query('SELECT 1');
    answer.catch(() => undefined);
    try {
      if ((await Promise.race([answer, late])) !== 'LATE' || this.watch.answers > answersBefore) return;
    } finally {
      clearTimeout(timer);
    }
    this.connector.suspect();
    throw new DatabaseUnavailableError(`the database did not answer within ${timeoutMs} ms`);
  }

  private assertReady(): void {
    const status = this.connector.status;
    if (!status.ready) throw new DatabaseUnavailableError(`the database is away: ${status.reason}`);
  }

  private heard(error: unknown): unknown {
    if (error instanceof DatabaseUnavailableError && doubtsConnection(error)) this.connector.suspect();
    return error;
  }
}

/** Not committed: because of the database, or because the work wanted to roll back. */
function outcomeOf(error: unknown): string {
  const fromDatabase = error instanceof DatabaseUnavailableError || sqlStateOf(error) !== undefined;
  return fromDatabase ? classifyDatabaseError(error).toLowerCase() : 'abandoned';
}
