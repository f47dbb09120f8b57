import type { Logger } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import type { ConnectionPolicy } from './connection-policy.js';
import type { ConnectionWatch } from './connection-watch.js';
import { ownConnection } from './data-source-options.js';
import { DatabaseUnavailableError, sqlStateOf } from './database-error.js';
import type { DatabaseStatus } from './database.js';
import { connectAttemptsTotal } from './metrics.js';
import { migrate } from './migrate.js';

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;
/** The same reason is logged again after this span only. */
const REPEAT_LOG_MS = 30_000;
/** At most one look at a server in doubt per span. */
const PROBE_SPAN_MS = 500;

export interface ConnectorOptions {
  readonly url: string;
  /** Where the database is, fit for a log. */
  readonly name: string;
  readonly policy: ConnectionPolicy;
  readonly logger: Logger;
}

/** Keeps one data source connected: the loop that reaches the server, and the look at it when somebody doubts that it answers. */
export class Connector {
  private state: DatabaseStatus = { ready: false, sinceMs: Date.now(), reason: 'not connected yet' };
  private readonly stopping = new AbortController();
  private loop: Promise<void> | undefined;
  private probing: Promise<void> | undefined;
  private probedAtMs = -PROBE_SPAN_MS;
  private logged = { reason: '', atMs: 0 };
  private readonly waiting = new Set<() => void>();

  constructor(
    private readonly dataSource: DataSource,
    private readonly watch: ConnectionWatch,
    private readonly options: ConnectorOptions,
  ) {
    watch.onDoubt(() => this.suspect());
  }

  get status(): DatabaseStatus {
    return this.state;
  }

  /** Starts the loop; a second call while it runs does nothing. */
  start(): void {
    if (this.stopping.signal.aborted) return;
    this.loop ??= this.connectUntilReady().finally(() => (this.loop = undefined));
  }

  /** Ends loop and probe and closes the pool. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.loop;
    await this.probing;
    this.state = { ready: false, sinceMs: Date.now(), reason: 'closed' };
    if (this.dataSource.isInitialized) await this.dataSource.destroy();
  }

  async whenReady(timeoutMs: number): Promise<void> {
    if (this.state.ready) return;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve, reject) => {
      this.waiting.add(resolve);
      timer = setTimeout(() => {
        this.waiting.delete(resolve);
        const reason = this.state.ready ? '' : this.state.reason;
        reject(new DatabaseUnavailableError(`${this.options.name} was not ready within ${timeoutMs} ms: ${reason}`));
      }, timeoutMs);
    }).finally(() => clearTimeout(timer));
  }

  /** Somebody doubts that the server answers: looks at it on a connection of its own, at most once per span. */
  suspect(): void {
    if (!this.state.ready || this.probing !== undefined || this.stopping.signal.aborted) return;
    const waitMs = Math.max(0, this.probedAtMs + PROBE_SPAN_MS - performance.now());
    this.probing = pause(waitMs, this.stopping.signal)
      .then(() => this.probe())
      .finally(() => {
        this.probedAtMs = performance.now();
        this.probing = undefined;
      });
  }

  private async probe(): Promise<void> {
    if (this.stopping.signal.aborted) return;
    const client = ownConnection(this.options.url, this.options.policy);
    const abort = (): void => client.cut(new Error('stopped'));
    this.stopping.signal.addEventListener('abort', abort);
    try {
      await client.connect();
      await client.query('SELECT 1');
    } catch (error) {
      // "Too many connections" is an answer: the connections that are open go on working.
      if (!this.stopping.signal.aborted && sqlStateOf(error)?.startsWith('53') !== true) this.lose(error);
    } finally {
      this.stopping.signal.removeEventListener('abort', abort);
      await client.end().catch(() => undefined);
    }
  }

  private lose(error: unknown): void {
    const reason = reasonOf(error);
    this.state = { ready: false, sinceMs: Date.now(), reason };
    this.log(`${this.options.name} is away: ${reason}; trying again until it is back`, reason);
    this.watch.cutAll(new DatabaseUnavailableError(`the database is away: ${reason}`));
    this.start();
  }

  private async connectUntilReady(): Promise<void> {
    const { signal } = this.stopping;
    for (let pauseMs = FIRST_PAUSE_MS; !signal.aborted; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      try {
        await this.establish();
        connectAttemptsTotal.inc({ outcome: 'connected' });
        return;
      } catch (error) {
        if (signal.aborted) return;
        connectAttemptsTotal.inc({ outcome: 'failed' });
        const reason = reasonOf(error);
        this.state = { ready: false, sinceMs: this.state.sinceMs, reason };
        this.log(`${this.options.name} cannot be reached: ${reason}; trying again until it can`, reason);
      }
      await pause(pauseMs * (0.5 + Math.random() / 2), signal);
    }
  }

  private async establish(): Promise<void> {
    const { url, policy, name, logger } = this.options;
    // Also after an outage: the server that came back may be another one, restored or empty.
    const migrations = await migrate(url, policy, this.stopping.signal);
    if (migrations.length > 0) logger.log(`Set up the schema: ${migrations.join(', ')}`);
    if (!this.dataSource.isInitialized) await this.dataSource.initialize();
    if (this.stopping.signal.aborted) return;
    this.state = { ready: true, sinceMs: Date.now() };
    this.logged = { reason: '', atMs: 0 };
    logger.log(`Connected to ${name}`);
    for (const resolve of this.waiting) resolve();
    this.waiting.clear();
  }

  private log(line: string, reason: string): void {
    const nowMs = Date.now();
    if (reason === this.logged.reason && nowMs - this.logged.atMs < REPEAT_LOG_MS) return;
    this.logged = { reason, atMs: nowMs };
    this.options.logger.warn(line);
  }
}

/** The reason in one line. Errors of several addresses tried at once carry theirs inside. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(reasonOf).join('; ');
  const sqlState = sqlStateOf(error);
  const message = error instanceof Error ? error.message : String(error);
  return sqlState === undefined ? message : `${message} (SQLSTATE ${sqlState})`;
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done);
  });
}
