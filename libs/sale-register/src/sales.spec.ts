import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { RedisUnavailableError } from '#redis';
import { RegisterRig, startRig } from './test-support/register-rig.js';
import type { TestRedis } from '../../../test/support/services.js';

let server: TestRedis;
let rig: RegisterRig;
let stop: () => Promise<void>;
beforeAll(async () => {
  ({ server, rig, stop } = await startRig());
});
afterAll(() => stop());
beforeEach(async () => {
  await rig.redis.flushall();
  await rig.openEpoch();
});

const terms = { voucherId: '17', beginMs: 1000, endMs: 9_000_000_000_000, units: 5, unitsVersion: 1 };
const version = async () => Number(await rig.redis.hget(rig.keys.sale(0, '17'), 'version'));

describe('publish', () => {
  it('puts a voucher on sale once and never overwrites a running sale', async () => {
    expect(await rig.register.publish(0, terms)).toEqual({ kind: 'PUBLISHED' });
    await rig.buy('17', '1', '101');
    const running = await rig.snapshot('17');
    expect(await rig.register.publish(0, { ...terms, units: 50, unitsVersion: 9 })).toEqual({ kind: 'EXISTS' });
    expect(await rig.snapshot('17')).toEqual(running);
  });

  it('waits for the rebuild while the epoch is closed or the sale is being rebuilt', async () => {
    await rig.redis.del(rig.keys.epoch(0));
    expect(await rig.register.publish(0, terms)).toEqual({ kind: 'CLOSED' });
    expect(await rig.register.readSale(0, '17')).toEqual({ kind: 'ABSENT' });
    const epoch = await rig.openEpoch();
    await rig.rebuild.begin(0, '17', epoch, 'token123');
    expect(await rig.register.publish(0, terms)).toEqual({ kind: 'CLOSED' });
  });

  it.each(['sale', 'stock', 'marks'] as const)(
    'asks for a rebuild where only some keys are there: %s',
    async (which) => {
      if (which === 'stock') await rig.redis.set(rig.keys.stock(0, '17'), '3');
      else await rig.redis.hset(rig.keys.saleKeys(0, '17')[which], '1', '101');
      expect(await rig.register.publish(0, terms)).toEqual({ kind: 'NEEDS_REBUILD' });
      expect(await rig.redis.exists(...Object.values(rig.keys.saleKeys(0, '17')))).toBe(1);
    },
  );

  it('leaves nothing half published where a write is refused', async () => {
    await rig.redis.acl('SETUSER', 'narrow', 'reset', 'on', '>secret', '~*', '&*', '+@all', '-hset');
    const narrow = await RegisterRig.connect({ url: server.url.replace('redis://', 'redis://narrow:secret@') });
    await expect(narrow.register.publish(0, terms)).rejects.toThrow(RedisUnavailableError);
    expect(await rig.register.readSale(0, '17')).toEqual({ kind: 'ABSENT' });
    narrow.close();
  });

  it('refuses terms that are no whole numbers', async () => {
    for (const bad of [{ units: -1 }, { units: 1.5 }, { beginMs: NaN }, { unitsVersion: Infinity }]) {
      await expect(rig.register.publish(0, { ...terms, ...bad })).rejects.toThrow(TypeError);
    }
  });
});

describe('restock', () => {
  it('moves the stock by the difference, whatever was sold between, and raises the version', async () => {
    await rig.register.publish(0, terms);
    await rig.buy('17', '1', '101');
    const before = await version();
    expect(await rig.register.restock(0, { voucherId: '17', units: 8, unitsVersion: 2 })).toEqual({
      kind: 'APPLIED',
      unitsLeft: 7,
    });
    expect(await rig.register.restock(0, { voucherId: '17', units: 6, unitsVersion: 3 })).toEqual({
      kind: 'APPLIED',
      unitsLeft: 5,
    });
    expect(await version()).toBe(before + 2);
  });

  it('is harmless when repeated or reordered', async () => {
    await rig.register.publish(0, terms);
    await rig.register.restock(0, { voucherId: '17', units: 10, unitsVersion: 3 });
    const after = await rig.snapshot('17');
    expect(await rig.register.restock(0, { voucherId: '17', units: 10, unitsVersion: 3 })).toEqual({
      kind: 'ALREADY',
      unitsLeft: 10,
    });
    expect(await rig.register.restock(0, { voucherId: '17', units: 8, unitsVersion: 2 })).toEqual({
      kind: 'CONFLICT',
      units: 10,
      unitsVersion: 3,
    });
    expect(await rig.register.restock(0, { voucherId: '17', units: 9, unitsVersion: 3 })).toEqual({
      kind: 'CONFLICT',
      units: 10,
      unitsVersion: 3,
    });
    expect(await rig.snapshot('17')).toEqual(after);
  });

  it('never takes units that are sold', async () => {
    await rig.register.publish(0, terms);
    await rig.buy('17', '1', '101');
    await rig.buy('17', '2', '102');
    expect(await rig.register.restock(0, { voucherId: '17', units: 1, unitsVersion: 2 })).toEqual({
      kind: 'INSUFFICIENT_UNITS',
      unitsLeft: 3,
    });
    expect(await rig.register.restock(0, { voucherId: '17', units: 2, unitsVersion: 2 })).toEqual({
      kind: 'APPLIED',
      unitsLeft: 0,
    });
  });

  it('raises while the epoch is closed, but lowers only where the register can be trusted', async () => {
    await rig.register.publish(0, terms);
    await rig.redis.del(rig.keys.epoch(0));
    expect(await rig.register.restock(0, { voucherId: '17', units: 4, unitsVersion: 2 })).toEqual({ kind: 'CLOSED' });
    expect(await rig.register.restock(0, { voucherId: '17', units: 7, unitsVersion: 2 })).toEqual({
      kind: 'APPLIED',
      unitsLeft: 7,
    });
  });

  it('makes no sale where there is none, and touches none that is being rebuilt or broken', async () => {
    const change = { voucherId: '17', units: 7, unitsVersion: 2 };
    expect(await rig.register.restock(0, change)).toEqual({ kind: 'NOT_PUBLISHED' });
    expect(await rig.register.readSale(0, '17')).toEqual({ kind: 'ABSENT' });
    await rig.register.publish(0, terms);
    await rig.redis.set(rig.keys.stock(0, '17'), 'abc');
    expect(await rig.register.restock(0, change)).toEqual({ kind: 'CLOSED' });
    await rig.redis.del(rig.keys.stock(0, '17'));
    await rig.redis.rpush(rig.keys.stock(0, '17'), 'x');
    expect(await rig.register.restock(0, change)).toEqual({ kind: 'CLOSED' });
    await rig.rebuild.begin(0, '17', await rig.openEpoch(), 'token123');
    expect(await rig.register.restock(0, change)).toEqual({ kind: 'CLOSED' });
  });

  it('sells start + 50 when raised ten times by five during 300 purchases', async () => {
    await rig.register.publish(0, { ...terms, units: 100 });
    const buys = Array.from({ length: 300 }, (_, at) => rig.buy('17', String(at + 1), String(at + 1000)));
    const raises = Array.from({ length: 10 }, (_, at) =>
      rig.register.restock(0, { voucherId: '17', units: 105 + 5 * at, unitsVersion: 2 + at }),
    );
    await Promise.all([...buys, ...raises]);
    const { stock, marks } = await rig.snapshot('17');
    expect(Number(stock) + Object.keys(marks).length).toBe(150);
  });
});

describe('release', () => {
  const order = { voucherId: '17', userId: '1', orderId: '101' };
  beforeEach(async () => {
    await rig.register.publish(0, terms);
    await rig.buy('17', '1', '101');
  });

  it('gives unit and mark back once, however often it is repeated, and raises the version', async () => {
    const before = await version();
    const outcomes = await Promise.all([1, 2, 3].map(() => rig.register.release(0, order)));
    expect(outcomes).toEqual(['RELEASED', 'NOT_HELD', 'NOT_HELD']);
    expect(await rig.snapshot('17')).toMatchObject({ stock: '5', marks: {} });
    expect(await version()).toBe(before + 1);
    expect(await rig.buy('17', '1', '102')).toEqual({ kind: 'ACCEPTED', orderId: '102' });
    expect(await rig.register.release(0, order)).toBe('NOT_HELD');
  });

  it('changes nothing for an order that the mark does not hold', async () => {
    const before = await rig.snapshot('17');
    expect(await rig.register.release(0, { ...order, orderId: '999' })).toBe('NOT_HELD');
    expect(await rig.register.release(0, { ...order, userId: '9' })).toBe('NOT_HELD');
    expect(await rig.snapshot('17')).toEqual(before);
  });

  it('puts the other order into the mark instead of giving the unit back', async () => {
    expect(await rig.register.release(0, order, '777')).toBe('REASSIGNED');
    expect(await rig.register.release(0, order, '777')).toBe('NOT_HELD');
    expect(await rig.snapshot('17')).toMatchObject({ stock: '4', marks: { '1': '777' } });
    await expect(rig.register.release(0, { ...order, orderId: '777' }, '777')).rejects.toThrow(TypeError);
  });

  it('creates no key, obeys no epoch, and leaves a broken stock to the rebuild', async () => {
    expect(await rig.register.release(0, { ...order, voucherId: '404' })).toBe('NOT_HELD');
    expect(await rig.redis.exists(...Object.values(rig.keys.saleKeys(0, '404')))).toBe(0);
    await rig.redis.del(rig.keys.epoch(0), rig.keys.sale(0, '17'), rig.keys.stock(0, '17'));
    expect(await rig.register.release(0, order)).toBe('RELEASED');
    expect(await rig.redis.exists(...Object.values(rig.keys.saleKeys(0, '17')))).toBe(0);
    await rig.redis.rpush(rig.keys.marks(0, '17'), 'x');
    expect(await rig.register.release(0, order)).toBe('NOT_HELD');
  });

  it.each(['hdel', 'incrby'])('leaves mark and unit as they were where %s is withdrawn', async (command) => {
    await rig.redis.acl('SETUSER', 'narrow', 'reset', 'on', '>secret', '~*', '&*', '+@all', `-${command}`);
    const narrow = await RegisterRig.connect({ url: server.url.replace('redis://', 'redis://narrow:secret@') });
    await expect(narrow.register.release(0, order)).rejects.toThrow(RedisUnavailableError);
    expect(await rig.snapshot('17')).toMatchObject({ stock: '4', marks: { '1': '101' } });
    narrow.close();
  });
});

describe('reading', () => {
  it('reads sales as they stand, each absent, broken or found', async () => {
    await rig.register.publish(0, terms);
    await rig.buy('17', '1', '101');
    await rig.register.publish(0, { ...terms, voucherId: '18' });
    await rig.redis.set(rig.keys.stock(0, '18'), '4x');
    await rig.register.publish(0, { ...terms, voucherId: '19' });
    await rig.redis.del(rig.keys.sale(0, '19'));
    await rig.register.publish(0, { ...terms, voucherId: '20' });
    await rig.redis.del(rig.keys.stock(0, '20'));
    await rig.redis.hset(rig.keys.stock(0, '20'), 'a', 'b');
    expect(await rig.register.readSales(0, ['17', '404', '18', '19', '20'])).toEqual([
      {
        kind: 'FOUND',
        sale: { ...terms, status: 'open', version: await version(), unitsLeft: 4, marks: 1 },
      },
      { kind: 'ABSENT' },
      { kind: 'BROKEN', cause: 'unitsLeft is no number' },
      { kind: 'BROKEN', cause: 'beginMs is missing' },
      { kind: 'BROKEN', cause: expect.stringContaining('WRONGTYPE') as string },
    ]);
  });

  it('reads one mark, and all marks in pieces', async () => {
    await rig.register.publish(0, { ...terms, units: 3000 });
    const batch = Array.from({ length: 2500 }, (_, at) => ({
      voucherId: '17',
      userId: String(at + 1),
      orderId: String(at + 10_000),
    }));
    await rig.register.admit(0, batch, 10_000);
    expect(await rig.register.readMark(0, '17', '2500')).toBe('12499');
    expect(await rig.register.readMark(0, '17', '2501')).toBeUndefined();
    const seen = new Map<string, string>();
    for await (const piece of rig.register.scanMarks(0, '17'))
      for (const mark of piece) seen.set(mark.userId, mark.orderId);
    expect(seen).toEqual(new Map(batch.map(({ userId, orderId }) => [userId, orderId])));
  });
});

describe('directory and leases', () => {
  it('knows a voucher from memory, from Redis, or not at all', async () => {
    expect(await rig.directory.partitionOf('17')).toBeUndefined();
    await rig.directory.record('17', 3);
    const other = await RegisterRig.connect({ url: server.url });
    expect(other.directory.known('17')).toBeUndefined();
    expect(await other.directory.partitionOf('17')).toBe(3);
    await rig.redis.flushall();
    expect(await other.directory.partitionOf('17')).toBe(3);
    await rig.redis.set(rig.keys.where('18'), 'x');
    expect(await rig.directory.partitionOf('18')).toBeUndefined();
    other.close();
  });

  it('never leases a number twice, also to many at once, and lets counters live three days', async () => {
    const blocks = await Promise.all(Array.from({ length: 50 }, () => rig.lease.lease('order', '2026:11:30', 100)));
    const numbers = blocks.flatMap(({ first }) => Array.from({ length: 100 }, (_, at) => first + at));
    expect(new Set(numbers).size).toBe(5000);
    const ttl = await rig.redis.ttl('icr:order:2026:11:30');
    expect(ttl).toBeGreaterThan(3 * 86_400 - 60);
    expect(ttl).toBeLessThanOrEqual(3 * 86_400);
  });

  it('starts a missing or unreadable counter at a random place, not where it was and not at 0', async () => {
    const starts = new Set<number>();
    for (const spoil of [
      () => rig.redis.del('icr:order:2026:11:30'),
      () => rig.redis.set('icr:order:2026:11:30', 'x'),
      () => rig.redis.del('icr:order:2026:11:30').then(() => rig.redis.rpush('icr:order:2026:11:30', 'x')),
    ]) {
      await spoil();
      const { first } = await rig.lease.lease('order', '2026:11:30', 10);
      expect(first).toBeGreaterThan(0);
      starts.add(first);
    }
    expect(starts.size).toBe(3);
    // The counter of another data history, a little behind: what it would count was handed out before the loss.
    const { first } = await rig.lease.lease('order', '2026:11:30', 10);
    const other = (BigInt(first) ^ (1n << 32n)) - 5n;
    await rig.redis.set('icr:order:2026:11:30', String(other));
    const jumped = BigInt((await rig.lease.lease('order', '2026:11:30', 10)).first);
    expect(jumped >> 32n).toBe(BigInt(first) >> 32n);
    expect((jumped - other) % (1n << 32n)).not.toBe(1n);
    await expect(rig.lease.lease('order', '2026-11-30', 10)).rejects.toThrow(TypeError);
    await expect(rig.lease.lease('order', '2026:11:30', 0)).rejects.toThrow(TypeError);
  });
});

it('puts the prefix before every key, so that two deployments on one Redis do not see each other', async () => {
  await rig.redis.flushall();
  const [a, b] = await Promise.all(
    ['a:', 'b:'].map((keyPrefix) => RegisterRig.connect({ url: server.url, keyPrefix })),
  );
  if (a === undefined || b === undefined) throw new Error('two rigs');
  await a.openEpoch();
  await a.register.publish(0, terms);
  await a.directory.record('17', 0);
  await a.lease.lease('order', '2026:11:30', 10);
  await a.log.ensureGroup(0);
  await a.buy('17', '1', '101');
  expect((await a.redis.keys('*')).every((key) => key.startsWith('a:'))).toBe(true);
  expect(await b.buy('17', '1', '102')).toEqual({ kind: 'UNAVAILABLE', reason: 'EPOCH' });
  expect(await b.directory.partitionOf('17')).toBeUndefined();
  expect(await b.log.stats(0)).toMatchObject({ exists: false, length: 0 });
  a.close();
  b.close();
});
