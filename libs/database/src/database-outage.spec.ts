import type { ChildProcess } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { freePort } from '../../../scripts/services/free-port.mjs';
import { startPostgres } from '../../../scripts/services/postgres-server.mjs';
import { createDatabase, Database, DatabaseUnavailableError } from './index.js';

let root: string;
let port: number;
let server: ChildProcess;
let database: Database;

const start = async (): Promise<void> => {
  server = await startPostgres({ dir: join(root, 'data'), port, settings: { fsync: 'off' } });
};

/** `pg_ctl stop -m fast`: sessions are ended, transactions rolled back. */
async function stopFast(): Promise<void> {
  const ended = new Promise((resolve) => server.once('exit', resolve));
  server.kill('SIGINT');
  await ended;
}

/** To PostgreSQL and all its processes: each is a process group of its own. */
async function allProcesses(): Promise<number[]> {
  const rows = await database.query<{ pid: number }>('SELECT pid FROM pg_stat_activity');
  return [...rows.map((row) => row.pid), server.pid as number];
}

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'flash-sale-outage-'));
  chmodSync(root, 0o755);
  port = await freePort();
  const url = `postgres://postgres:postgres@127.0.0.1:${port}/postgres`;
  database = createDatabase({ database: { url, poolSize: 2 }, consumer: { claimMinIdleMs: 3_000 } });
});

afterAll(async () => {
  await database.onApplicationShutdown();
  await stopFast();
  rmSync(root, { recursive: true, force: true });
});

it('becomes ready by itself when the server starts later', async () => {
  expect(database.isReady()).toBe(false);
  await start();
  await database.whenReady(20_000);
  await database.ping(5_000);
});

it('survives three restarts of the server, idle and at work', async () => {
  for (let round = 0; round < 3; round += 1) {
    const atWork = Promise.allSettled(
      Array.from({ length: 8 }, () =>
        database.transaction((_manager, session) => session.query('SELECT pg_sleep(0.2)')),
      ),
    );
    await stopFast();
    for (const outcome of await atWork) {
      if (outcome.status === 'rejected') expect(outcome.reason).toBeInstanceOf(DatabaseUnavailableError);
    }
    await expect(database.query('SELECT 1')).rejects.toBeInstanceOf(DatabaseUnavailableError);
    await start();
    await vi.waitFor(async () => expect(await database.query('SELECT 1')).toHaveLength(1), 20_000);
  }
});

it('ends work on a frozen server in bounded time, fails fast then, and goes on when it thaws', async () => {
  await Promise.all([database.query('SELECT 1'), database.query('SELECT 1')]);
  const processes = await allProcesses();
  for (const pid of processes) process.kill(pid, 'SIGSTOP');
  try {
    await expect(database.transaction((_manager, session) => session.query('SELECT 1'))).rejects.toBeInstanceOf(
      DatabaseUnavailableError,
    );
    await vi.waitFor(() => expect(database.isReady()).toBe(false), 20_000);
    await expect(database.query('SELECT 1')).rejects.toThrow('the database is away');
  } finally {
    for (const pid of processes) process.kill(pid, 'SIGCONT');
  }
  await database.whenReady(20_000);
  expect(await database.query('SELECT 1')).toHaveLength(1);
});

it('sets the schema up again where the server comes back empty', async () => {
  await database.query('DROP SCHEMA public CASCADE');
  await database.query('CREATE SCHEMA public');
  await expect(database.query('SELECT FROM tb_voucher')).rejects.toMatchObject({ kind: 'PASSING', sqlState: '42P01' });
  await stopFast();
  await expect(database.query('SELECT 1')).rejects.toBeInstanceOf(DatabaseUnavailableError);
  await vi.waitFor(() => expect(database.isReady()).toBe(false), 20_000);
  await start();
  await database.whenReady(20_000);
  expect(await database.query('SELECT FROM tb_voucher')).toEqual([]);
});
