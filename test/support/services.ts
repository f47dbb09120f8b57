import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { inject } from 'vitest';
import { freePort } from '../../scripts/services/free-port.mjs';
import { startRedis } from '../../scripts/services/redis-server.mjs';

/** A real redis-server of one test file, on a free port, with a folder of its own. */
export class TestRedis {
  private child: ChildProcess | undefined;

  private constructor(
    readonly port: number,
    private readonly dir: string,
    private readonly args: string[],
  ) {}

  /** Starts it; `args` are redis-server arguments that win over the defaults (append-only, fsync always, noeviction). */
  static async start(args: string[] = []): Promise<TestRedis> {
    const port = await freePort({ clusterBus: args.includes('--cluster-enabled') });
    const redis = new TestRedis(port, mkdtempSync(join(tmpdir(), 'flash-sale-redis-')), args);
    await redis.up();
    return redis;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  get pid(): number {
    if (this.child?.pid === undefined) throw new Error('this Redis is not running');
    return this.child.pid;
  }

  /** Starts the server again on the same port and the same data. */
  async up(): Promise<void> {
    this.child = await startRedis({ dir: this.dir, port: this.port, args: this.args });
  }

  /** Ends the server with the signal and resolves when its process is gone. */
  async down(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const child = this.child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill(signal);
    await ended;
    this.child = undefined;
  }

  /** Freezes (SIGSTOP) or thaws (SIGCONT) the server. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    process.kill(this.pid, signal);
  }

  /** Ends the server and removes its data. */
  async destroy(): Promise<void> {
    if (this.child !== undefined) this.signal('SIGCONT');
    await this.down();
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** An empty database of one test file in the run's PostgreSQL. `destroy` drops it together with its sessions. */
export async function createTestDatabase(): Promise<{ url: string; destroy: () => Promise<void> }> {
  const admin = inject('postgresUrl');
  const name = `t_${randomBytes(8).toString('hex')}`;
  await run(admin, `CREATE DATABASE ${name}`);
  const url = new URL(admin);
  url.pathname = `/${name}`;
  return { url: url.href, destroy: () => run(admin, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`) };
}

async function run(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
