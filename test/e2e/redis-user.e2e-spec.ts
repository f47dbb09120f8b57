import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type RunningApp, startApp, whenReady } from '../support/app.js';
import { createTestDatabase, TestRedis } from '../support/services.js';
import { ADMIN, tokenOf } from '../support/tokens.js';

const root = join(import.meta.dirname, '../..');
const rule = readFileSync(join(root, 'deploy/redis/user.conf'), 'utf8')
  .split('\n')
  .find((line) => line.startsWith('user '))
  ?.split(' ')
  .slice(1) as string[];
const PASSWORD = 'change-this-password';
/** Not every path is walked here: clusters, a numbered database, hmdp's login, and repairs of damage that does not happen in this test. */
const NOT_WALKED = new Set(
  'select cluster|slots cluster|info asking readonly wait unsubscribe incr expire ttl xtrim xgroup hincrby hdel subscribe'.split(
    ' ',
  ),
);

let server: TestRedis;
let home: Awaited<ReturnType<typeof createTestDatabase>>;
let product: RunningApp;
let operator: Redis;
let sql: pg.Client;

beforeAll(async () => {
  [server, home] = await Promise.all([TestRedis.start(), createTestDatabase()]);
  operator = new Redis(server.url);
  await operator.call('ACL', 'SETUSER', ...rule);
  await operator.call('CONFIG', 'RESETSTAT');
  sql = new pg.Client({ connectionString: home.url });
  await sql.connect();
  const redisUrl = `redis://seckill:${PASSWORD}@127.0.0.1:${server.port}`;
  product = await startApp({ redisUrl, databaseUrl: home.url });
  await whenReady(product.url);
});
afterAll(async () => {
  await product.close();
  operator.disconnect();
  await sql.end();
  await server.destroy();
  await home.destroy();
});

async function call(
  method: string,
  path: string,
  as: string,
  body?: unknown,
): Promise<{ status: number; body: Reply }> {
  const answer = await fetch(`${product.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${as}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: (await answer.json()) as Reply };
}
interface Reply {
  readonly voucherId?: string;
  readonly items?: readonly { readonly id: string }[];
  readonly parts?: Readonly<Record<string, unknown>>;
}

const buy = (voucherId: string, user: number) =>
  call('POST', `/v1/vouchers/${voucherId}/orders`, tokenOf(String(user)));

async function stored(voucherId: string, count: number): Promise<void> {
  await vi.waitFor(async () => {
    const rows = await sql.query('SELECT 1 FROM tb_voucher_order WHERE voucher_id = $1 AND status = 1', [voucherId]);
    expect(rows.rowCount).toBe(count);
  }, 15_000);
}

/** What the server refused to anybody since the start. */
const refused = async () =>
  ((await operator.call('ACL', 'LOG')) as unknown[][]).map((entry) => [entry[5], entry[7], entry[9]].join(' '));

it('sells, stores, restocks, keeps dead letters and rebuilds under the documented user, and nothing is refused', async () => {
  const created = await call('POST', '/v1/vouchers', ADMIN, {
    shopId: '1',
    title: 'Coffee',
    payValue: 100,
    actualValue: 200,
    stock: 3,
    beginTime: new Date(Date.now() - 60_000).toISOString(),
    endTime: new Date(Date.now() + 3_600_000).toISOString(),
  });
  expect(created.status).toBe(201);
  const voucherId = String(created.body.voucherId);
  for (const user of [1, 2, 3]) expect(await buy(voucherId, user)).toMatchObject({ status: 202 });
  expect(await buy(voucherId, 1)).toMatchObject({ status: 409, body: { code: 'DUPLICATE_ORDER' } });
  expect(await buy(voucherId, 4)).toMatchObject({ status: 409, body: { code: 'SOLD_OUT' } });
  await stored(voucherId, 3);
  expect(await call('PATCH', `/v1/vouchers/${voucherId}/stock`, ADMIN, { delta: 2 })).toMatchObject({ status: 200 });
  await vi.waitFor(async () => expect(await buy(voucherId, 4)).toMatchObject({ status: 202 }), 5000);
  await stored(voucherId, 4);

  await operator.xadd('stream.orders:{0}', '*', 'voucherId', 'x');
  const letter = await vi.waitFor(async () => {
    const { body } = await call('GET', '/v1/admin/dead-letters', ADMIN);
    expect(body.items).toHaveLength(1);
    return String(body.items?.[0]?.id);
  }, 15_000);
  expect((await call('POST', `/v1/admin/dead-letters/${letter}/discard`, ADMIN)).status).toBe(200);

  await operator.del(`seckill:stock:{0}:${voucherId}`);
  expect(await call('POST', `/v1/admin/vouchers/${voucherId}/rebuild`, ADMIN)).toMatchObject({ status: 200 });
  await operator.flushall();
  // Cleared by hand, and everything comes back: units, buyers, group.
  await vi.waitFor(async () => expect(await buy(voucherId, 5)).toMatchObject({ status: 202 }), 20_000);
  expect(await buy(voucherId, 1)).toMatchObject({ status: 409, body: { code: 'DUPLICATE_ORDER' } });
  await stored(voucherId, 5);
  const ready = await call('GET', '/health/ready', ADMIN);
  expect(ready.body.parts).toMatchObject({ redis: { status: 'ok' }, durability: { status: 'ok', level: 'always' } });
  expect(await refused()).toEqual([]);
}, 90_000);

it('grants no command that the service never calls', async () => {
  const used = new Set(
    (await operator.info('commandstats')).split('\r\n').map((line) => /^cmdstat_([a-z|]+):/.exec(line)?.[1] ?? ''),
  );
  // The statistics count a command by its subcommand.
  const isUsed = (name: string) => used.has(name) || [...used].some((each) => each.startsWith(`${name}|`));
  const granted = rule.filter((word) => word.startsWith('+')).map((word) => word.slice(1));
  expect(granted.filter((name) => !isUsed(name) && !NOT_WALKED.has(name))).toEqual([]);
});

it('grants every command that a script names', () => {
  const granted = new Set(rule.filter((word) => word.startsWith('+')).map((word) => word.slice(1)));
  const scripts = readdirSync(join(root, 'libs'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.lua'))
    .map((file) => readFileSync(join(root, 'libs', file), 'utf8'));
  expect(scripts.length).toBeGreaterThan(10);
  const named = scripts.flatMap((text) =>
    [...text.matchAll(/call\('([A-Z]+)'/g)].map(([, name]) => name?.toLowerCase()),
  );
  expect([...new Set(named)].filter((name) => !granted.has(name ?? ''))).toEqual([]);
});

it('grants no key, channel or command outside of the service', async () => {
  const dryRun = (...command: string[]) => operator.call('ACL', 'DRYRUN', 'seckill', ...command);
  expect(await dryRun('GET', 'seckill:stock:{0}:1')).toBe('OK');
  expect(String(await dryRun('GET', 'session:1'))).toContain('no permissions');
  expect(String(await dryRun('PUBLISH', 'news', 'x'))).toContain('no permissions');
  expect(await dryRun('SUBSCRIBE', 'seckill:sale:{0}:1')).toBe('OK');
  for (const command of [
    ['FLUSHALL'],
    ['KEYS', '*'],
    ['SHUTDOWN'],
    ['ACL', 'LIST'],
    ['CONFIG', 'SET', 'appendonly', 'no'],
  ])
    expect(String(await dryRun(...command))).toContain('no permissions');
});
