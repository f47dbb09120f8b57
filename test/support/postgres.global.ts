import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { freePort } from '../../scripts/services/free-port.mjs';
import { startPostgres } from '../../scripts/services/postgres-server.mjs';

/** One real PostgreSQL for the whole run; every test file makes a database of its own in it (see services.ts). */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const root = mkdtempSync(join(tmpdir(), 'flash-sale-pg-'));
  const { chmodSync } = await import('node:fs');
  chmodSync(root, 0o755);
  const port = await freePort();
  const child = await startPostgres({
    dir: join(root, 'data'),
    port,
    settings: { max_connections: '300', fsync: 'off', log_min_messages: 'fatal' },
  });
  project.provide('postgresUrl', `postgres://postgres:postgres@127.0.0.1:${port}/postgres`);
  return async () => {
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGINT');
    await ended;
    rmSync(root, { recursive: true, force: true });
  };
}

declare module 'vitest' {
  interface ProvidedContext {
    postgresUrl: string;
  }
}
