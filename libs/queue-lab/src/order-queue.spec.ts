import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { TestRedis } from '../../../test/support/services.js';
import {
  type LabOrder,
  MemoryQueue,
  type OrderQueue,
  PlainListQueue,
  PubSubQueue,
  ReliableListQueue,
  StreamQueue,
} from './index.js';

let redis: TestRedis;
beforeAll(async () => {
  redis = await TestRedis.start();
});
afterAll(() => redis.destroy());

const order = (n: number): LabOrder => ({ id: String(n), userId: String(1000 + n), voucherId: '7' });
const orders = (count: number): LabOrder[] => Array.from({ length: count }, (_, n) => order(n + 1));
let key = 0;
const nextKey = (): string => `lab:${(key += 1)}`;

async function collect(queue: OrderQueue): Promise<LabOrder[]> {
  const handled: LabOrder[] = [];
  await queue.consume((each) => {
    handled.push(each);
    return Promise.resolve();
  });
  return handled;
}

describe.each<[string, () => OrderQueue]>([
  ['memory', () => new MemoryQueue()],
  ['plain list', () => new PlainListQueue(redis.url, nextKey())],
  ['reliable list', () => new ReliableListQueue(redis.url, nextKey())],
  ['pub/sub', () => new PubSubQueue(redis.url, nextKey())],
  ['stream', () => new StreamQueue(redis.url, nextKey())],
])('%s', (_name, make) => {
  it('hands every order to a listening consumer once, in order', async () => {
    const queue = make();
    const handled = await collect(queue);
    for (const each of orders(200)) expect(await queue.offer(each)).toBe(true);
    await vi.waitFor(() => expect(handled).toEqual(orders(200)));
    await queue.close();
  });
});

it('a full memory queue refuses and takes again when there is room', async () => {
  const queue = new MemoryQueue(3);
  const taken: boolean[] = [];
  for (const each of orders(4)) taken.push(await queue.offer(each));
  expect(taken).toEqual([true, true, true, false]);
  const handled = await collect(queue);
  await vi.waitFor(() => expect(handled).toHaveLength(3));
  expect(await queue.offer(order(9))).toBe(true);
  await queue.close();
});

it('a list keeps orders for a consumer that comes later; pub/sub does not', async () => {
  const listKey = nextKey();
  const channel = nextKey();
  const list = new PlainListQueue(redis.url, listKey);
  const pubsub = new PubSubQueue(redis.url, channel);
  for (const each of orders(5)) await Promise.all([list.offer(each), pubsub.offer(each)]);
  const fromList = await collect(list);
  const fromPubSub = await collect(pubsub);
  await pubsub.offer(order(6));
  await vi.waitFor(() => expect(fromPubSub).toEqual([order(6)]));
  await vi.waitFor(() => expect(fromList).toEqual(orders(5)));
  await Promise.all([list.close(), pubsub.close()]);
});

it('what a consumer had in hand: gone from a plain list, back from a reliable list and from a stream', async () => {
  const [plainKey, reliableKey, streamKey] = [nextKey(), nextKey(), nextKey()];
  const makers = [
    () => new PlainListQueue(redis.url, plainKey),
    () => new ReliableListQueue(redis.url, reliableKey),
    () => new StreamQueue(redis.url, streamKey),
  ];
  const handledAfter: LabOrder[][] = [];
  for (const make of makers) {
    const first = make();
    await first.offer(order(1));
    let inHand = false;
    // A consumer that never finishes its order is what a killed one looks like from Redis.
    await first.consume(() => {
      inHand = true;
      return new Promise(() => undefined);
    });
    await vi.waitFor(() => expect(inHand).toBe(true));
    const second = make();
    const handled = await collect(second);
    await second.offer(order(2));
    await vi.waitFor(() => expect(handled.at(-1)).toEqual(order(2)));
    handledAfter.push(handled);
    await second.close();
  }
  expect(handledAfter).toEqual([[order(2)], [order(1), order(2)], [order(1), order(2)]]);
});

describe('a stream', () => {
  it('is read by two groups independently', async () => {
    const streamKey = nextKey();
    const first = new StreamQueue(redis.url, streamKey, { group: 'g1', consumer: 'c1', takeOverAfterMs: 1000 });
    const second = new StreamQueue(redis.url, streamKey, { group: 'g2', consumer: 'c1', takeOverAfterMs: 1000 });
    for (const each of orders(50)) await first.offer(each);
    const handled = await Promise.all([collect(first), collect(second)]);
    await vi.waitFor(() => expect(handled).toEqual([orders(50), orders(50)]));
    await Promise.all([first.close(), second.close()]);
  });

  it('shares its entries among three consumers of one group, each entry handled once', async () => {
    const streamKey = nextKey();
    const consumers = ['c1', 'c2', 'c3'].map(
      (consumer) => new StreamQueue(redis.url, streamKey, { group: 'g1', consumer, takeOverAfterMs: 60_000 }),
    );
    const handled = await Promise.all(consumers.map(collect));
    for (const each of orders(900)) await consumers[0]?.offer(each);
    const all = (): string[] => handled.flat().map(({ id }) => id);
    await vi.waitFor(() => expect(all()).toHaveLength(900));
    expect(new Set(all()).size).toBe(900);
    expect(handled.filter((part) => part.length > 0).length).toBeGreaterThan(1);
    await Promise.all(consumers.map((consumer) => consumer.close()));
  });

  it('gives each entry an id of time and sequence that only grows', async () => {
    const queue = new StreamQueue(redis.url, nextKey());
    const ids = await Promise.all(orders(20).map((each) => queue.add(each)));
    const parts = ids.map((id) => /^(\d+)-(\d+)$/.exec(id)?.slice(1).map(BigInt) ?? []);
    for (const [ms] of parts) expect(Math.abs(Number(ms) - Date.now())).toBeLessThan(60_000);
    const ranks = parts.map(([ms = 0n, sequence = 0n]) => (ms << 64n) + sequence);
    expect(ranks).toEqual([...new Set(ranks)].sort((a, b) => (a < b ? -1 : 1)));
    await queue.close();
  });
});
