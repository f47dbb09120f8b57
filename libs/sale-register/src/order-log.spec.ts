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
  await rig.publish('17', 100);
});

const stream = () => rig.keys.stream(0);
const length = () => rig.redis.xlen(stream());
const buyMany = (count: number, firstUser = 1) =>
  rig.register.admit(
    0,
    Array.from({ length: count }, (_, at) => ({
      voucherId: '17',
      userId: String(firstUser + at),
      orderId: String(firstUser + at + 1000),
    })),
    5000,
  );
const letter = (entryId: string) => ({
  entryId,
  cause: 'field "userId" is missing',
  fields: { id: '5', cause: 'x' },
  deliveries: 3,
  firstSeenMs: 1234,
});

describe('the group', () => {
  it('starts at the beginning of the stream, whoever makes it, and "exists" is fine', async () => {
    await buyMany(3);
    const made = await Promise.all(Array.from({ length: 5 }, () => rig.log.ensureGroup(0)));
    expect(made.filter((each) => each === 'CREATED')).toHaveLength(1);
    expect(await rig.read('c', 10)).toHaveLength(3);
    await rig.redis.xgroup('DESTROY', stream(), 'g1');
    expect(await rig.log.ensureGroup(0)).toBe('CREATED');
    expect(await rig.read('c', 10)).toHaveLength(3);
  });

  it('is not taken for existing where the user has no right, or the key is no stream', async () => {
    await rig.redis.acl('SETUSER', 'narrow', 'reset', 'on', '>secret', '~*', '&*', '+@all', '-xgroup');
    const narrow = await RegisterRig.connect({ url: server.url.replace('redis://', 'redis://narrow:secret@') });
    await expect(narrow.log.ensureGroup(0)).rejects.toThrow(RedisUnavailableError);
    narrow.close();
    await rig.redis.set(stream(), 'x');
    await expect(rig.log.ensureGroup(0)).rejects.toThrow('WRONGTYPE');
  });
});

describe('acknowledging', () => {
  beforeEach(() => rig.log.ensureGroup(0));

  it('removes what is finished, and only that', async () => {
    await buyMany(5);
    const ids = await rig.read('c', 4);
    expect(await rig.log.acknowledge(0, [ids[1] as string, ids[2] as string])).toEqual({ acknowledged: 2, trimmed: 0 });
    expect(await rig.log.acknowledge(0, [ids[0] as string])).toEqual({ acknowledged: 1, trimmed: 3 });
    expect(await rig.log.acknowledge(0, [ids[3] as string])).toEqual({ acknowledged: 1, trimmed: 1 });
    expect(await length()).toBe(1);
    expect(await rig.read('c', 10)).toHaveLength(1);
  });

  it('is harmless when repeated, for entries that are gone, and without stream or group', async () => {
    await buyMany(2);
    const ids = await rig.read('c', 2);
    await rig.redis.xdel(stream(), ids[0] as string);
    expect(await rig.log.acknowledge(0, ids)).toEqual({ acknowledged: 2, trimmed: 1 });
    expect(await rig.log.acknowledge(0, ids)).toEqual({ acknowledged: 0, trimmed: 0 });
    await rig.redis.xgroup('DESTROY', stream(), 'g1');
    expect(await rig.log.acknowledge(0, ids)).toEqual({ acknowledged: 0, trimmed: 0 });
    await rig.redis.del(stream());
    expect(await rig.log.acknowledge(0, ids)).toEqual({ acknowledged: 0, trimmed: 0 });
    expect(await rig.redis.exists(stream())).toBe(0);
  });

  it('keeps what another group has not finished', async () => {
    await buyMany(3);
    await rig.redis.xgroup('CREATE', stream(), 'audit', '0');
    const ids = await rig.read('c', 3);
    expect(await rig.log.acknowledge(0, ids)).toEqual({ acknowledged: 3, trimmed: 0 });
    await rig.redis.xreadgroup('GROUP', 'audit', 'a', 'COUNT', 2, 'STREAMS', stream(), '>');
    await rig.redis.xack(stream(), 'audit', ids[0] as string);
    expect(await rig.log.acknowledge(0, [])).toEqual({ acknowledged: 0, trimmed: 1 });
    expect((await rig.log.stats(0)).foreignGroups).toEqual([{ name: 'audit', lag: 1, pending: 1 }]);
  });

  it('bounds the stream: a second 3,000 orders leave no more than the first', async () => {
    for (const firstUser of [1, 5001]) {
      await rig.register.restock(0, {
        voucherId: '17',
        units: 3000 * (firstUser === 1 ? 1 : 2),
        unitsVersion: firstUser + 1,
      });
      await buyMany(3000, firstUser);
      const ids = await rig.read('c', 3000);
      expect(await rig.log.acknowledge(0, ids)).toEqual({ acknowledged: 3000, trimmed: 3000 });
      expect(await length()).toBe(0);
    }
  });

  it('compares ids that are no safe numbers as what they are', async () => {
    await rig.redis.del(stream());
    await rig.redis.xadd(stream(), '9-18446744073709551614', 'a', 'b');
    await rig.redis.xadd(stream(), '9-18446744073709551615', 'a', 'b');
    await rig.redis.xadd(stream(), '10-5', 'a', 'b');
    await rig.redis.xadd(stream(), '10-6', 'a', 'b');
    await rig.log.ensureGroup(0);
    const ids = await rig.read('c', 3);
    expect(await rig.log.acknowledge(0, [ids[0] as string])).toEqual({ acknowledged: 1, trimmed: 1 });
    expect(await rig.log.acknowledge(0, ids)).toEqual({ acknowledged: 2, trimmed: 2 });
    expect((await rig.log.readEntriesAfter(0, undefined, 10)).map(({ entryId }) => entryId)).toEqual(['10-6']);
  });
});

describe('dead letters', () => {
  beforeEach(() => rig.log.ensureGroup(0));
  const orderOf = (userId: string) => ({ voucherId: '17', userId, orderId: String(Number(userId) + 1000) });
  const dead = async (fields: Record<string, string>) => {
    const [entryId] = await rig.read('c', 1);
    const outcome = await rig.log.deadLetter(0, { ...letter(entryId as string), fields });
    if (outcome.kind !== 'WRITTEN') throw new Error(outcome.kind);
    return outcome.id;
  };

  it('are written once together with the acknowledgement, whoever races, and keep the fields apart from ours', async () => {
    await buyMany(1);
    const [entryId] = await rig.read('c', 1);
    const outcomes = await Promise.all([1, 2, 3].map(() => rig.log.deadLetter(0, letter(entryId as string))));
    expect(outcomes.map(({ kind }) => kind)).toEqual(['WRITTEN', 'NOT_PENDING', 'NOT_PENDING']);
    expect(await rig.log.listDeadLetters(0, 10)).toEqual([
      { partition: 0, id: expect.any(String) as string, order: undefined, ...letter(entryId as string) },
    ]);
    expect(await rig.log.stats(0)).toMatchObject({ pending: 0, deadLetters: 1 });
  });

  it.each(['xack', 'xadd'])('leave the entry pending and no letter where %s is withdrawn', async (command) => {
    await buyMany(1);
    const [entryId] = await rig.read('c', 1);
    await rig.redis.acl('SETUSER', 'narrow', 'reset', 'on', '>secret', '~*', '&*', '+@all', `-${command}`);
    const narrow = await RegisterRig.connect({ url: server.url.replace('redis://', 'redis://narrow:secret@') });
    await expect(narrow.log.deadLetter(0, letter(entryId as string))).rejects.toThrow(RedisUnavailableError);
    await expect(narrow.log.deadLetter(0, letter(entryId as string))).rejects.toThrow(RedisUnavailableError);
    expect(await rig.log.stats(0)).toMatchObject({ pending: 1, deadLetters: 0 });
    narrow.close();
  });

  it('leave the entry pending while Redis is full', async () => {
    await buyMany(1);
    const [entryId] = await rig.read('c', 1);
    await rig.redis.config('SET', 'maxmemory', '1');
    await expect(rig.log.deadLetter(0, letter(entryId as string))).rejects.toMatchObject({
      kind: { state: 'OOM', refused: true },
    });
    expect(await rig.log.stats(0)).toMatchObject({ pending: 1, deadLetters: 0 });
    await rig.redis.config('SET', 'maxmemory', '0');
    expect(await rig.log.deadLetter(0, letter(entryId as string))).toMatchObject({ kind: 'WRITTEN' });
  });

  it('are redriven once, only while the mark holds the order', async () => {
    await buyMany(2);
    const [first, second] = [
      await dead({ userId: '1', voucherId: '17', id: '1001' }),
      await dead({ userId: '2', voucherId: '17', id: '1002' }),
    ];
    expect((await rig.log.findDeadLetter(0, first))?.order).toEqual(orderOf('1'));
    const outcomes = await Promise.all([1, 2].map(() => rig.log.redrive(0, first, orderOf('1'))));
    expect(outcomes.map(({ kind }) => kind)).toEqual(['REDRIVEN', 'GONE']);
    expect(await rig.read('c', 10)).toHaveLength(1);
    await rig.register.release(0, orderOf('2'));
    expect(await rig.log.redrive(0, second, orderOf('2'))).toEqual({ kind: 'NOT_HELD' });
    expect((await rig.log.listDeadLetters(0, 10)).map(({ id }) => id)).toEqual([second]);
    expect(await rig.log.listDeadLetters(0, 10, second)).toEqual([]);
    expect(await rig.log.removeDeadLetter(0, second)).toBe(true);
    expect(await rig.log.removeDeadLetter(0, second)).toBe(false);
    expect(await rig.log.findDeadLetter(0, second)).toBeUndefined();
  });

  it('keep letter and stream as they were where the removal is refused', async () => {
    await buyMany(1);
    const id = await dead({ userId: '1', voucherId: '17', id: '1001' });
    await rig.log.acknowledge(0, []);
    await rig.redis.acl('SETUSER', 'narrow', 'reset', 'on', '>secret', `~${stream()}`, '&*', '+@all');
    await rig.redis.acl('SETUSER', 'narrow', `(%R~* +@all -xdel)`);
    const narrow = await RegisterRig.connect({ url: server.url.replace('redis://', 'redis://narrow:secret@') });
    await expect(narrow.log.redrive(0, id, orderOf('1'))).rejects.toThrow();
    expect(await length()).toBe(0);
    expect(await rig.log.stats(0)).toMatchObject({ deadLetters: 1 });
    narrow.close();
  });

  it('bound what a huge entry leaves behind', async () => {
    await rig.redis.xadd(stream(), '*', 'userId', 'x'.repeat(1_000_000));
    await dead({ userId: 'x'.repeat(1_000_000) });
    const [found] = await rig.log.listDeadLetters(0, 1);
    expect(found?.fields['userId']?.length).toBeLessThan(5000);
  });
});

describe('statistics', () => {
  it('are zeros with a flag while stream or group is missing, and count what waits without a group', async () => {
    const zeros = {
      partition: 0,
      exists: false,
      length: 0,
      lag: 0,
      pending: 0,
      deadLetters: 0,
      consumers: [],
      foreignGroups: [],
    };
    expect(await rig.log.stats(0)).toMatchObject(zeros);
    await buyMany(2);
    expect(await rig.log.stats(0)).toMatchObject({
      ...zeros,
      length: 2,
      lag: 2,
      oldestUndeliveredMs: expect.any(Number) as number,
    });
    await rig.redis.set(stream(), 'x');
    expect(await rig.log.stats(0)).toMatchObject(zeros);
  });

  it('tell length, lag, pending, ages and consumers', async () => {
    await rig.log.ensureGroup(0);
    const now = Number((await rig.redis.time())[0]) * 1000;
    await rig.redis.xadd(stream(), `${now - 9000}-0`, 'a', 'b');
    await rig.redis.xadd(stream(), `${now - 5000}-0`, 'a', 'b');
    await rig.read('c', 1);
    const stats = await rig.log.stats(0);
    expect(stats).toMatchObject({
      exists: true,
      length: 2,
      lag: 1,
      pending: 1,
      consumers: [{ name: 'c', pending: 1 }],
    });
    expect(stats.oldestPendingMs).toBeGreaterThanOrEqual(9000);
    expect(stats.oldestPendingMs).toBeLessThan(20_000);
    expect(stats.oldestUndeliveredMs).toBeGreaterThanOrEqual(5000);
    expect(stats.oldestUndeliveredMs).toBeLessThan(9000);
  });

  it('answer while Redis is full, read-only or not saving', async () => {
    await rig.redis.config('SET', 'maxmemory', '1');
    expect(await rig.log.stats(0)).toMatchObject({ length: 0 });
    expect(await rig.epoch.state(0)).toMatchObject({ kind: 'OPEN' });
    expect(await rig.register.readSale(0, '17')).toMatchObject({ kind: 'FOUND' });
    await rig.redis.config('SET', 'maxmemory', '0');
  });

  it('find entries by id and page through the stream', async () => {
    await buyMany(5);
    const all = await rig.log.readEntriesAfter(0, undefined, 10);
    const page = await rig.log.readEntriesAfter(0, all[1]?.entryId, 2);
    expect(page.map(({ entryId }) => entryId)).toEqual([all[2]?.entryId, all[3]?.entryId]);
    expect(page[0]?.fields).toEqual({ userId: '3', voucherId: '17', id: '1003' });
    await rig.redis.xdel(stream(), all[2]?.entryId as string);
    expect(
      (
        await rig.log.findEntries(
          0,
          all.map(({ entryId }) => entryId),
        )
      ).length,
    ).toBe(4);
    expect(await rig.log.findEntry(0, all[2]?.entryId as string)).toBeUndefined();
    expect((await rig.log.findEntry(0, all[0]?.entryId as string))?.fields).toMatchObject({ id: '1001' });
  });
});
