import type { ChildProcess } from 'node:child_process';
import { chmodSync, mkdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Redis } from 'ioredis';
import pg from 'pg';
import { freePort } from '../../scripts/services/free-port.mjs';
import { startPostgres } from '../../scripts/services/postgres-server.mjs';
import { startRedis } from '../../scripts/services/redis-server.mjs';
import { until } from '../support/waiting.js';

const END_LIMIT_MS = 20_000;

/** Whether the process has ended. */
export function hasEnded(child: ChildProcess | undefined): boolean {
  return child === undefined || child.exitCode !== null || child.signalCode !== null;
}

/** Sends the signal and resolves when the process is gone. */
export async function endChild(child: ChildProcess | undefined, signal: NodeJS.Signals): Promise<void> {
  if (child === undefined || hasEnded(child)) return;
  // A frozen process hears nothing but SIGKILL.
  if (signal !== 'SIGKILL') child.kill('SIGCONT');
  child.kill(signal);
  await until('the end of a process', () => hasEnded(child), END_LIMIT_MS);
}

/** A real redis-server that can be killed, frozen, emptied and started again on the same port. */
export class RedisServer {
  private child: ChildProcess | undefined;

  private constructor(
    readonly port: number,
    readonly dir: string,
    private args: readonly string[],
  ) {}

  /** `args` win over the defaults: append-only, fsync always, never evicting. */
  static async start(dir: string, args: readonly string[] = []): Promise<RedisServer> {
    const port = await freePort({ clusterBus: args.includes('--cluster-enabled') });
    const server = new RedisServer(port, dir, args);
    await server.up();
    return server;
  }

  get pid(): number {
    return this.child?.pid ?? 0;
  }

  get isRunning(): boolean {
    return !hasEnded(this.child);
  }

  /** How it is started from now on. */
  use(args: readonly string[]): void {
    this.args = args;
  }

  async up(args: readonly string[] = this.args): Promise<void> {
    this.args = args;
    this.child = await startRedis({ dir: this.dir, port: this.port, args: [...args] });
  }

  down(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    return endChild(this.child, signal);
  }

  signal(signal: NodeJS.Signals): void {
    this.child?.kill(signal);
  }

  freeze(): void {
    this.signal('SIGSTOP');
  }

  thaw(): void {
    this.signal('SIGCONT');
  }

  /** Removes what it kept on the disk; it must be down. */
  forget(): void {
    rmSync(this.dir, { recursive: true, force: true });
  }

  /** Runs `use` with a connection of its own to this server. */
  async with<T>(use: (redis: Redis) => Promise<T>): Promise<T> {
    const redis = new Redis({ port: this.port, host: '127.0.0.1', lazyConnect: true, retryStrategy: () => null });
    redis.on('error', () => undefined);
    await redis.connect();
    try {
      return await use(redis);
    } finally {
      redis.disconnect();
    }
  }
}

/** A real PostgreSQL that can be killed and started again on the same port and data. */
export class PostgresServer {
  private child: ChildProcess | undefined;
  private pool: pg.Pool | undefined;

  private constructor(
    readonly port: number,
    readonly dir: string,
  ) {}

  static async start(dir: string): Promise<PostgresServer> {
    mkdirSync(dirname(dir), { recursive: true });
    chmodSync(dirname(dir), 0o755);
    const server = new PostgresServer(await freePort(), dir);
    await server.up();
    return server;
  }

  url(port = this.port): string {
    return `postgres://postgres:postgres@127.0.0.1:${port}/postgres`;
  }

  async up(): Promise<void> {
    // Written to the page cache only: these faults kill processes, not the machine.
    this.child = await startPostgres({
      dir: this.dir,
      port: this.port,
      logFile: join(dirname(this.dir), 'postgres.log'),
      settings: { max_connections: '200', fsync: 'off', log_min_messages: 'fatal', shared_buffers: '64MB' },
    });
  }

  signal(signal: NodeJS.Signals): void {
    this.child?.kill(signal);
  }

  /** SIGKILL as a crash, SIGQUIT as an immediate stop, SIGINT as a proper one. */
  async down(signal: NodeJS.Signals = 'SIGINT'): Promise<void> {
    await this.pool?.end().catch(() => undefined);
    this.pool = undefined;
    await endChild(this.child, signal);
  }

  /** One statement on a connection of its own pool. */
  async query<R extends pg.QueryResultRow>(text: string, values: unknown[] = []): Promise<R[]> {
    if (this.pool === undefined) {
      this.pool = new pg.Pool({ connectionString: this.url(), max: 3, connectionTimeoutMillis: 5000 });
      this.pool.on('error', () => undefined);
    }
    const { rows } = await this.pool.query<R>(text, values);
    return rows;
  }

  /** Runs `use` within a session that is closed afterwards, whatever it left open. */
  async session<T>(use: (client: pg.Client) => Promise<T>): Promise<T> {
    const client = new pg.Client({ connectionString: this.url() });
    client.on('error', () => undefined);
    await client.connect();
    try {
      return await use(client);
    } finally {
      await client.end().catch(() => undefined);
    }
  }
}
