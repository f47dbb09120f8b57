import pg from 'pg';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type RunningApp, startApp, whenReady } from '../support/app.js';
import { createTestDatabase, TestRedis } from '../support/services.js';
import { ADMIN, tokenOf } from '../support/tokens.js';

let server: TestRedis;
let home: Awaited<ReturnType<typeof createTestDatabase>>;
let product: RunningApp;
let redis: Redis;
let sql: pg.Client;

beforeAll(async () => {
  [server, home] = await Promise.all([TestRedis.start(), createTestDatabase()]);
  product = await startApp({ redisUrl: server.url, databaseUrl: home.url });
  redis = new Redis(server.url);
  sql = new pg.Client({ connectionString: home.url });
  await Promise.all([sql.connect(), whenReady(product.url)]);
});
afterAll(async () => {
  await product.close();
  redis.disconnect();
  await sql.end();
  await server.destroy();
  await home.destroy();
});

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

async function call(method: string, path: string, as: string, body?: unknown, url = product.url): Promise<Answer> {
  const answer = await fetch(`${url}${path}`, {
    method,
    headers: { authorization: `Bearer ${as}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

async function voucher(stock: number): Promise<string> {
  const answer = await call('POST', '/v1/vouchers', ADMIN, {
    shopId: '1',
    title: 'Coffee',
    payValue: 100,
    actualValue: 200,
    stock,
    beginTime: new Date(Date.now() - 60_000).toISOString(),
    endTime: new Date(Date.now() + 3_600_000).toISOString(),
  });
  expect(answer.status).toBe(201);
  return answer.body['voucherId'] as string;
}

const buy = (voucherId: string, user: number): Promise<Answer> =>
  call('POST', `/v1/vouchers/${voucherId}/orders`, tokenOf(String(user)));
const rebuild = (voucherId: string, as = ADMIN, url = product.url): Promise<Answer> =>
  call('POST', `/v1/admin/vouchers/${voucherId}/rebuild`, as, undefined, url);

async function stored(voucherId: string, count: number): Promise<void> {
  await vi.waitFor(async () => {
    const rows = await sql.query('SELECT 1 FROM tb_voucher_order WHERE voucher_id = $1 AND status = 1', [voucherId]);
    expect(rows.rowCount).toBe(count);
  }, 10_000);
}

describe('POST /v1/admin/vouchers/:voucherId/rebuild', () => {
  it('rebuilds, reports, and changes nothing the second time', async () => {
    const voucherId = await voucher(5);
    // The rebuild of what the start still lacks may hold a voucher that is stored meanwhile: refused without effect, as to any buyer.
    await vi.waitFor(async () => expect(await buy(voucherId, 1)).toMatchObject({ status: 202 }), 10_000);
    await stored(voucherId, 1);
    await redis.del(`seckill:stock:{0}:${voucherId}`);
    const first = await rebuild(voucherId);
    expect(first).toMatchObject({ status: 200, body: { voucherId, partition: 0, marks: 1, marksSet: 0 } });
    expect(await rebuild(voucherId)).toMatchObject({ status: 200, body: { voucherId, marks: 1, marksSet: 0 } });
    expect(await redis.get(`seckill:stock:{0}:${voucherId}`)).toBe('4');
  });

  it('is for administrators, of vouchers that exist', async () => {
    expect(await rebuild('4711')).toMatchObject({ status: 404, body: { code: 'VOUCHER_NOT_FOUND' } });
    expect(await rebuild('x')).toMatchObject({ status: 400 });
    expect(await rebuild('1', tokenOf('1'))).toMatchObject({ status: 403 });
  });

  it('is 503 while the database is away', async () => {
    const lost = await startApp({ redisUrl: server.url, databaseUrl: 'postgres://a:b@127.0.0.1:1/none' });
    try {
      expect(await rebuild('1', ADMIN, lost.url)).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE' } });
    } finally {
      await lost.close();
    }
  });
});

describe('a sale whose data Redis lost', () => {
  it('is refused or right, never sold out, never sold twice, when the stock key alone is gone', async () => {
    const voucherId = await voucher(2);
    await redis.del(`seckill:stock:{0}:${voucherId}`);
    const first = await buy(voucherId, 1);
    expect([202, 503]).toContain(first.status);
    await vi.waitFor(async () => expect((await buy(voucherId, 2)).status).not.toBe(503), 10_000);
    await stored(voucherId, first.status === 202 ? 2 : 1);
    expect(Number(await redis.get(`seckill:stock:{0}:${voucherId}`))).toBe(first.status === 202 ? 0 : 1);
  });

  it('opens again by itself; each former buyer is told the order he has, and rows never exceed the units', async () => {
    const voucherId = await voucher(40);
    const buyers = Array.from({ length: 30 }, (_, at) => 1_000 + at);
    const orders = new Map<number, unknown>();
    for (const user of buyers) orders.set(user, (await buy(voucherId, user)).body['orderId']);
    await stored(voucherId, 30);
    await redis.flushall();
    expect([202, 503]).toContain((await buy(voucherId, 5_000)).status);
    await whenReady(product.url);
    for (const user of buyers) {
      const again = await buy(voucherId, user);
      expect(again).toMatchObject({ status: 409, body: { code: 'DUPLICATE_ORDER', orderId: orders.get(user) } });
    }
    const rush = await Promise.all(Array.from({ length: 60 }, (_, at) => buy(voucherId, 5_000 + at)));
    expect(rush.every(({ status }) => status === 202 || status === 409)).toBe(true);
    await stored(voucherId, 40);
    expect(await redis.get(`seckill:stock:{0}:${voucherId}`)).toBe('0');
    expect(await redis.hlen(`seckill:order:{0}:${voucherId}`)).toBe(40);
  });
});
