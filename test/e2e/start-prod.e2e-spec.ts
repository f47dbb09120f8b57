import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { freePort } from '../../scripts/services/free-port.mjs';
import { createTestDatabase, TestRedis } from '../support/services.js';
import { TEST_SECRET } from '../support/tokens.js';

const root = join(import.meta.dirname, '../..');
let redis: TestRedis;
let database: Awaited<ReturnType<typeof createTestDatabase>>;

beforeAll(async () => {
  [redis, database] = await Promise.all([TestRedis.start(), createTestDatabase()]);
});
afterAll(async () => {
  await redis.destroy();
  await database.destroy();
});

/** `npm run start:prod` with this environment and nothing else; its words, and how it ended. */
function startProd(env: Record<string, string>) {
  const child: ChildProcess = spawn('npm', ['run', '--silent', 'start:prod'], {
    cwd: root,
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said: string[] = [];
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (data: Buffer) => said.push(data.toString()));
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  return { child, ended, output: () => said.join('') };
}

it('start:prod names every setting that production needs, and ends with an error', async () => {
  const prod = startProd({ AUTH_JWT_SECRET: 'short' });
  expect(await prod.ended).toBe(1);
  for (const name of ['REDIS_URL', 'DATABASE_URL', 'AUTH_JWT_SECRET']) expect(prod.output()).toContain(name);
  expect(prod.output()).not.toContain('short');
});

it('start:prod serves on every address, starts nothing else, and ends on SIGTERM with 0', async () => {
  const port = await freePort();
  const prod = startProd({
    PORT: String(port),
    REDIS_URL: redis.url,
    DATABASE_URL: database.url,
    AUTH_JWT_SECRET: TEST_SECRET,
  });
  try {
    // 127.0.0.2 is reached only where the server listens on 0.0.0.0.
    const ready = () =>
      fetch(`http://127.0.0.2:${port}/health/ready`).then(
        ({ status }) => status,
        () => 0,
      );
    await expect.poll(ready, { timeout: 60_000 }).toBe(200);
    prod.child.kill('SIGTERM');
    expect(await prod.ended).toBe(0);
  } finally {
    prod.child.kill('SIGKILL');
  }
});
