import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { given } from './child.js';
import { BULLMQ_QUEUE, bullmqConnection } from './bullmq-queue.js';
import { servePurchases } from './purchase-route.js';

/** Peer (b), request side: a Lua script decides, an accepted order becomes a BullMQ job. */
const DECIDE = `
  if tonumber(redis.call('GET', KEYS[1]) or '0') <= 0 then return 1 end
  if redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1 then return 2 end
  redis.call('DECR', KEYS[1])
  redis.call('SADD', KEYS[2], ARGV[1])
  return 0`;

interface Deciding {
  decide(stock: string, buyers: string, userId: string): Promise<number>;
}

const redis = new Redis(given('REDIS_URL'));
redis.defineCommand('decide', { numberOfKeys: 2, lua: DECIDE });
const queue = new Queue(BULLMQ_QUEUE, {
  connection: bullmqConnection(),
  defaultJobOptions: { removeOnComplete: true, attempts: 5, backoff: { type: 'exponential', delay: 200 } },
});
let last = BigInt(Date.now()) << 20n;

await servePurchases(async (voucherId, userId) => {
  const { decide } = redis as unknown as Deciding;
  const verdict = await decide.call(redis, `peer:stock:${voucherId}`, `peer:buyers:${voucherId}`, userId);
  if (verdict !== 0) return { kind: verdict === 1 ? 'SOLD_OUT' : 'DUPLICATE_ORDER' };
  const orderId = String((last += 1n));
  await queue.add('order', { orderId, userId, voucherId });
  return { kind: 'ACCEPTED', orderId };
}, 'QUEUED');
