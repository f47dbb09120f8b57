import pg from 'pg';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { ProductProcess } from '../support/product-process.js';
import { createTestDatabase, TestRedis } from '../support/services.js';
import { ADMIN, tokenOf } from '../support/tokens.js';

let server: TestRedis;
let home: Awaited<ReturnType<typeof createTestDatabase>>;
let sql: pg.Client;
const running: ProductProcess[] = [];

beforeAll(async () => {
  [server, home] = await Promise.all([TestRedis.start(), createTestDatabase()]);
  sql = new pg.Client({ connectionString: home.url });
  await sql.connect();
});
afterAll(async () => {
  await Promise.all(running.map((each) => each.destroy()));
  await sql.end();
  await server.destroy();
  await home.destroy();
});

async function start(partitions: number): Promise<ProductProcess> {
  const product = await ProductProcess.spawn('seckill', {
    REDIS_URL: server.url,
    DATABASE_URL: home.url,
    STREAM_PARTITIONS: String(partitions),
    CONSUMER_BLOCK_MS: '200',
    CLAIM_MIN_IDLE_MS: '2500',
  });
  running.push(product);
  await product.until('/health/ready', 200);
  return product;
}

async function vouchers(at: ProductProcess, count: number, stock: number): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n += 1) {
    const answer = await fetch(`${at.url}/v1/vouchers`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ADMIN}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        ...{ shopId: '1', title: 'Coffee', payValue: 100, actualValue: 200, stock },
        beginTime: new Date(Date.now() - 60_000).toISOString(),
        endTime: new Date(Date.now() + 3_600_000).toISOString(),
      }),
    });
    expect(answer.status).toBe(201);
    ids.push(((await answer.json()) as { voucherId: string }).voucherId);
  }
  return ids;
}

/** Who was told 202, by voucher and user: what may never be lost. */
const accepted = new Map<string, string>();

/** One purchase, told again until it is decided; a process that is just ending leaves the buyer to the next one. */
async function buy(at: () => ProductProcess, voucherId: string, user: number): Promise<string> {
  return vi.waitFor(
    async () => {
      const answer = await fetch(`${at().url}/v1/vouchers/${voucherId}/orders`, {
        method: 'POST',
        headers: { authorization: `Bearer ${tokenOf(String(user))}` },
      });
      const body = (await answer.json()) as { orderId?: string; code?: string };
      expect([202, 409]).toContain(answer.status);
      if (answer.status === 202) accepted.set(`${voucherId}:${user}`, String(body.orderId));
      return body.code ?? 'ACCEPTED';
    },
    { timeout: 20_000, interval: 50 },
  );
}

const partitionsOf = async (ids: readonly string[]): Promise<number[]> => {
  const { rows } = await sql.query<{ partition_id: number }>(
    'SELECT partition_id FROM tb_seckill_voucher WHERE voucher_id = ANY ($1::bigint[]) ORDER BY voucher_id',
    [ids],
  );
  return rows.map((row) => row.partition_id);
};

it('STREAM_PARTITIONS grows from 1 to 8 between two starts while sales run: old vouchers stay, new ones spread, nothing is lost', async () => {
  const first = await start(1);
  // Stays at one partition all the time, as a process that is not restarted yet.
  const staying = await start(1);
  const old = await vouchers(first, 4, 200);
  let door = first;
  let user = 0;
  let selling = true;
  const crowd = Array.from({ length: 4 }, async (_, buyer) => {
    while (selling) {
      const turn = ++user;
      await buy(() => (buyer % 2 === 0 ? door : staying), old[turn % 4] as string, turn);
    }
  });
  await vi.waitFor(() => expect(accepted.size).toBeGreaterThan(60), 20_000);

  first.signal('SIGTERM');
  door = staying;
  expect(await first.ended).toMatchObject({ code: 0 });
  const second = await start(8);
  door = second;
  const fresh = await vouchers(second, 16, 3);
  // The process that knows of one partition sells from all of them, and both sell the old ones.
  for (const voucherId of fresh) {
    expect(await buy(() => staying, voucherId, 1_000_001)).toBe('ACCEPTED');
    expect(await buy(() => second, voucherId, 1_000_001)).toBe('DUPLICATE_ORDER');
    for (const buyer of [1_000_002, 1_000_003]) expect(await buy(() => second, voucherId, buyer)).toBe('ACCEPTED');
    expect(await buy(() => staying, voucherId, 1_000_004)).toBe('SOLD_OUT');
  }
  selling = false;
  await Promise.all(crowd);

  expect(await partitionsOf(old)).toEqual([0, 0, 0, 0]);
  expect(new Set(await partitionsOf(fresh))).toEqual(new Set([0, 1, 2, 3, 4, 5, 6, 7]));
  // Drained by the process that was started with one partition: it finds the others in the database.
  second.signal('SIGTERM');
  await second.ended;
  for (const voucherId of fresh) await restock(staying, voucherId, 1);
  for (const voucherId of fresh) expect(await buy(() => staying, voucherId, 1_000_005)).toBe('ACCEPTED');
  await vi.waitFor(async () => {
    const { rows } = await sql.query<{ id: string; voucher_id: string; user_id: string }>(
      'SELECT id, voucher_id, user_id FROM tb_voucher_order WHERE status = 1',
    );
    const stored = new Map(rows.map((row) => [`${row.voucher_id}:${row.user_id}`, row.id]));
    expect(stored).toEqual(accepted);
  }, 30_000);
}, 120_000);

async function restock(at: ProductProcess, voucherId: string, delta: number): Promise<void> {
  const answer = await fetch(`${at.url}/v1/vouchers/${voucherId}/stock`, {
    method: 'PATCH',
    headers: { authorization: `Bearer ${ADMIN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ delta }),
  });
  expect(answer.status).toBe(200);
}
