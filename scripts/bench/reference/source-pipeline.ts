import { Redis } from 'ioredis';
import Redlock from 'redlock';
import { given } from './child.js';
import { openPool } from './peer-orders.js';
import { servePurchases } from './purchase-route.js';

/**
 * Peer (c): the pipeline of the source texts, in their shape. Request: an id from a counter, one script call that decides and appends to the
 * stream. Storing, in the same process: read one entry, lock its buyer, one transaction (looked for, stock cut, row written), acknowledge.
 */
const DECIDE = `
  if tonumber(redis.call('GET', KEYS[1]) or '0') <= 0 then return 1 end
  if redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1 then return 2 end
  redis.call('INCRBY', KEYS[1], -1)
  redis.call('SADD', KEYS[2], ARGV[1])
  redis.call('XADD', KEYS[3], '*', 'userId', ARGV[1], 'voucherId', ARGV[2], 'id', ARGV[3])
  return 0`;
const STREAM = 'peer:stream.orders';
const GROUP = 'g1';
const LOCK_MS = 5_000;

interface Deciding {
  decide(...keysAndArguments: string[]): Promise<number>;
}
type Entry = readonly [id: string, fields: readonly string[]];

const redis = new Redis(given('REDIS_URL'));
const blocking = new Redis(given('REDIS_URL'));
const locks = new Redlock([redis], { retryCount: 0 });
const pool = openPool();
redis.defineCommand('decide', { numberOfKeys: 3, lua: DECIDE });
await redis.xgroup('CREATE', STREAM, GROUP, '0', 'MKSTREAM').catch(() => undefined);

async function createOrder(orderId: string, userId: string, voucherId: string): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    const { rows } = await client.query<{ count: string }>(
      'SELECT count(*) FROM tb_voucher_order WHERE user_id = $1 AND voucher_id = $2',
      [userId, voucherId],
    );
    if (rows[0]?.count === '0') {
      const cut = await client.query(
        'UPDATE tb_seckill_voucher SET stock = stock - 1 WHERE voucher_id = $1 AND stock > 0',
        [voucherId],
      );
      if (cut.rowCount === 1)
        await client.query('INSERT INTO tb_voucher_order (id, user_id, voucher_id) VALUES ($1, $2, $3)', [
          orderId,
          userId,
          voucherId,
        ]);
    }
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  } finally {
    client.release();
  }
}

async function storeForever(): Promise<never> {
  for (;;) {
    const read = (await blocking.xreadgroup(
      ...(['GROUP', GROUP, 'c1', 'COUNT', 1, 'BLOCK', 2000, 'STREAMS', STREAM, '>'] as const),
    )) as [string, Entry[]][] | null;
    const entry = read?.[0]?.[1][0];
    if (entry === undefined) continue;
    const [, userId = '', , voucherId = '', , orderId = ''] = entry[1];
    const lock = await locks.acquire([`peer:lock:order:${userId}`], LOCK_MS);
    try {
      await createOrder(orderId, userId, voucherId);
    } finally {
      await lock.release();
    }
    await redis.xack(STREAM, GROUP, entry[0]);
  }
}

await servePurchases(async (voucherId, userId) => {
  const orderId = String((BigInt(Math.floor(Date.now() / 1_000)) << 32n) | BigInt(await redis.incr('peer:icr:order')));
  const { decide } = redis as unknown as Deciding;
  const keys = [`peer:stock:${voucherId}`, `peer:buyers:${voucherId}`, STREAM];
  const verdict = await decide.call(redis, ...keys, userId, voucherId, orderId);
  if (verdict !== 0) return { kind: verdict === 1 ? 'SOLD_OUT' : 'DUPLICATE_ORDER' };
  return { kind: 'ACCEPTED', orderId };
}, 'QUEUED');
void storeForever();
