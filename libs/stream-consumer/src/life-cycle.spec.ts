import { Logger } from '@nestjs/common';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { DrainFixture, purchases } from '../../../test/support/drain-fixture.js';
import { StreamConsumer } from './index.js';

let drain: DrainFixture;
let nextVoucher = 900;

beforeAll(async () => {
  drain = await DrainFixture.start({ blockMs: 60_000, claimMinIdleMs: 2_000, batchSize: 100 });
});
afterAll(async () => {
  await drain.destroy();
});
afterEach(async () => {
  await drain.redis.call('ACL', 'SETUSER', 'default', '+@all');
  await drain.consumer.stop();
});

async function sale(units: number): Promise<string> {
  nextVoucher += 1;
  await drain.sale(String(nextVoucher), units);
  return String(nextVoucher);
}

/** Buyers of the newest sale, with order ids that no other sale of this file has. */
const buyers = (count: number, from = 0) => purchases(count, nextVoucher * 10_000 + from);

async function rows(voucherId: string): Promise<number> {
  return (await drain.facts(voucherId)).rows;
}

const within = { timeout: 15_000, interval: 25 };

describe('the loops', () => {
  it('store what comes, while they sleep in a read of a minute', async () => {
    const voucherId = await sale(2);
    drain.consumer.start();
    drain.consumer.start();
    await drain.buy(voucherId, buyers(1));
    await expect.poll(() => rows(voucherId), within).toBe(1);
    await expect.poll(() => drain.consumer.status().consumers[0]?.lastSuccessMs, within).toBeDefined();
    await drain.buy(voucherId, buyers(1, 1));
    await expect.poll(() => rows(voucherId), within).toBe(2);
    expect(drain.consumer.status()).toMatchObject({
      running: true,
      consumers: [{ partition: 0, consecutiveFailures: 0 }],
    });
  });

  it('drain a backlog of many batches, reading ahead, each order once', async () => {
    const voucherId = await sale(3_000);
    await drain.buy(voucherId, buyers(3_000));
    drain.consumer.start();
    await expect.poll(() => rows(voucherId), within).toBe(3_000);
    await expect.poll(() => drain.pending(), within).toBe(0);
    expect(await drain.length()).toBe(0);
    expect(await drain.facts(voucherId)).toEqual({
      rows: 3_000,
      rejected: 0,
      databaseStock: 0,
      unitsLeft: 0,
      marks: 3_000,
    });
  });

  it('finish what a silent consumer holds, without new traffic, and then remove its name, never earlier', async () => {
    const voucherId = await sale(30);
    await drain.buy(voucherId, buyers(30));
    await drain.ghostReads('ghost', 0);
    await drain.redis.xgroup('CREATECONSUMER', drain.stream, drain.group, 'long-gone');
    drain.consumer.start();
    await expect.poll(() => rows(voucherId), within).toBe(30);
    const own = drain.consumer.status().consumers[0]?.name;
    await expect.poll(() => drain.consumerNames(), within).toEqual([own]);
  });

  it('have names of their own in each process, and one takes over what the other leaves', async () => {
    const voucherId = await sale(500);
    const other = await drain.process();
    drain.consumer.start();
    other.get(StreamConsumer).start();
    const name = (consumer: StreamConsumer) => consumer.status().consumers[0]?.name;
    expect(name(drain.consumer)).not.toBe(name(other.get(StreamConsumer)));
    for (let from = 0; from < 500; from += 50) await drain.buy(voucherId, buyers(50, from));
    await drain.end(other);
    await expect.poll(() => rows(voucherId), within).toBe(500);
    await expect.poll(() => drain.pending(), within).toBe(0);
    expect(await drain.facts(voucherId)).toMatchObject({ databaseStock: 0, unitsLeft: 0, marks: 500, rejected: 0 });
  });

  it('run for every partition that was ever registered, also beyond the setting', async () => {
    await drain.orders.registerPartition(5);
    drain.consumer.start();
    await expect
      .poll(() => drain.consumer.status().consumers.map(({ partition }) => partition), within)
      .toEqual([0, 5]);
  });

  it('do not run where they are switched off', async () => {
    expect(drain.consumer.status()).toEqual({ running: false, consumers: [] });
    await expect(drain.consumer.runOnce(0)).resolves.toMatchObject({ read: 0 });
  });

  it('take over from passes by hand', async () => {
    const voucherId = await sale(2);
    await drain.buy(voucherId, buyers(1));
    await drain.consumer.runOnce(0);
    drain.consumer.start();
    await drain.buy(voucherId, buyers(1, 1));
    await expect.poll(() => rows(voucherId), within).toBe(2);
  });

  it('refuse to be driven by hand while they run', async () => {
    drain.consumer.start();
    await expect(drain.consumer.runOnce(0)).rejects.toThrow(/running/);
  });
});

describe('the loops go on by themselves', () => {
  const disturbances: [string, () => Promise<unknown>][] = [
    ['the stream was deleted', () => drain.redis.del(drain.stream)],
    ['the group was destroyed', () => drain.redis.xgroup('DESTROY', drain.stream, drain.group)],
    ['all connections were killed', () => drain.redis.client('KILL', 'TYPE', 'normal', 'SKIPME', 'yes')],
    ['all scripts were forgotten', () => drain.redis.script('FLUSH')],
    ['the database dropped all connections', () => drain.databaseAway().then(() => drain.databaseBack())],
  ];
  it.each(disturbances)('after %s', async (_what, disturb) => {
    const voucherId = await sale(2);
    drain.consumer.start();
    await drain.buy(voucherId, buyers(1));
    await expect.poll(() => rows(voucherId), within).toBe(1);
    await expect.poll(() => drain.pending(), within).toBe(0);
    await disturb();
    await vi.waitFor(() => drain.buy(voucherId, buyers(1, 1)), within);
    await expect.poll(() => rows(voucherId), within).toBe(2);
  });

  it('after Redis was killed and came back', async () => {
    const voucherId = await sale(3);
    drain.consumer.start();
    await drain.buy(voucherId, buyers(2));
    await drain.server.down();
    await expect.poll(() => drain.consumer.status().consumers[0]?.consecutiveFailures, within).toBeGreaterThan(1);
    await drain.server.up();
    await vi.waitFor(() => drain.openEpoch(), within);
    await vi.waitFor(() => drain.buy(voucherId, buyers(1, 2)), within);
    await expect.poll(() => rows(voucherId), within).toBe(3);
    await expect.poll(() => drain.consumer.status().consumers[0]?.consecutiveFailures, within).toBe(0);
  });

  it('after Redis was frozen: noticed long before the block time of a minute is over', async () => {
    const voucherId = await sale(1);
    drain.consumer.start();
    await expect.poll(() => drain.consumer.status().consumers[0]?.lastSuccessMs, within).toBeDefined();
    drain.server.signal('SIGSTOP');
    try {
      await expect
        .poll(() => drain.consumer.status().consumers[0]?.lastError, within)
        .toMatch(/did not answer|not connected/);
    } finally {
      drain.server.signal('SIGCONT');
    }
    await vi.waitFor(() => drain.buy(voucherId, buyers(1)), within);
    await expect.poll(() => rows(voucherId), within).toBe(1);
  });

  it('after a right was missing: they say which, pause, and write a bounded number of lines', async () => {
    const warnings: unknown[] = [];
    const warn = vi.spyOn(Logger.prototype, 'warn').mockImplementation((line: unknown) => void warnings.push(line));
    const voucherId = await sale(1);
    drain.consumer.start();
    await drain.redis.call('ACL', 'SETUSER', 'default', '-xreadgroup');
    await drain.buy(voucherId, buyers(1));
    const status = () => drain.consumer.status().consumers[0];
    await expect.poll(() => status()?.consecutiveFailures, within).toBeGreaterThan(5);
    expect(status()?.lastError).toMatch(/lacks a right.*NOPERM/);
    expect(warnings.filter((line) => String(line).includes('NOPERM')).length).toBeLessThanOrEqual(3);
    await drain.redis.call('ACL', 'SETUSER', 'default', '+xreadgroup');
    await expect.poll(() => rows(voucherId), within).toBe(1);
    await expect.poll(() => status()?.lastError, within).toBeUndefined();
    warn.mockRestore();
  });
});

describe('stop', () => {
  it('ends a read of a minute at once, removes the own name, and is harmless twice', async () => {
    drain.consumer.start();
    await expect.poll(() => drain.consumerNames(), within).toHaveLength(1);
    await Promise.all([drain.consumer.stop(), drain.consumer.stop()]);
    await drain.consumer.stop();
    expect(await drain.consumerNames()).toEqual([]);
    expect(drain.consumer.status()).toEqual({ running: false, consumers: [] });
  });

  it('before the start is harmless, and the start after it works', async () => {
    const fresh = await drain.process();
    await fresh.get(StreamConsumer).stop();
    fresh.get(StreamConsumer).start();
    const voucherId = await sale(1);
    await drain.buy(voucherId, buyers(1));
    await expect.poll(() => rows(voucherId), within).toBe(1);
    await drain.end(fresh);
  });

  it('under load finishes the work in hand: nothing stays with the stopped consumer, nothing is lost', async () => {
    const voucherId = await sale(5_000);
    await drain.buy(voucherId, buyers(5_000));
    for (let round = 0; round < 5; round += 1) {
      const process = await drain.process();
      process.get(StreamConsumer).start();
      const before = await rows(voucherId);
      await expect.poll(() => rows(voucherId), within).toBeGreaterThan(before);
      await drain.end(process);
      expect(await drain.pending()).toBe(0);
    }
    drain.consumer.start();
    await expect.poll(() => rows(voucherId), within).toBe(5_000);
    expect(await drain.facts(voucherId)).toMatchObject({ databaseStock: 0, unitsLeft: 0, marks: 5_000, rejected: 0 });
  });

  it('resolves in time while both stores are away, and leaves the work pending', async () => {
    const voucherId = await sale(20);
    const process = await drain.process();
    const consumer = process.get(StreamConsumer);
    consumer.start();
    await drain.buy(voucherId, buyers(10));
    await expect.poll(() => rows(voucherId), within).toBe(10);
    await drain.databaseAway();
    await drain.buy(voucherId, buyers(10, 100));
    await expect.poll(() => consumer.status().consumers[0]?.consecutiveFailures, within).toBeGreaterThan(0);
    drain.server.signal('SIGSTOP');
    await consumer.stop();
    drain.server.signal('SIGCONT');
    expect(consumer.status().running).toBe(false);
    await drain.databaseBack();
    await drain.end(process);
    await vi.waitFor(() => drain.redis.ping(), within);
    await drain.letPendingAge();
    drain.consumer.start();
    await expect.poll(() => rows(voucherId), within).toBe(20);
  });
});
