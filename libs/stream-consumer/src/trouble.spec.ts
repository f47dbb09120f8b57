import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { DrainFixture, purchases } from '../../../test/support/drain-fixture.js';

import { StreamConsumer } from './index.js';

let drain: DrainFixture;
let nextVoucher = 100;

beforeAll(async () => {
  drain = await DrainFixture.start({ maxDeliveries: 2 });
});
afterAll(async () => {
  await drain.destroy();
});
afterEach(async () => {
  await drain.redis.call('ACL', 'SETUSER', 'default', '+@all');
  await drain.redis.config('SET', 'maxmemory', '0');
  await drain.redis.config('SET', 'save', '');
  await drain.databaseBack();
  await drain.letPendingAge();
  await drain.consumer.runOnce(0);
  expect(await drain.pending()).toBe(0);
});

async function saleWith(units: number, buyers: number): Promise<string> {
  nextVoucher += 1;
  const voucherId = String(nextVoucher);
  await drain.sale(voucherId, units);
  await drain.buy(voucherId, purchases(buyers, nextVoucher * 10_000));
  return voucherId;
}

const sold = (count: number) => ({ rows: count, rejected: 0, databaseStock: 0, unitsLeft: 0, marks: count });

describe('while the database is away', () => {
  it('every entry stays pending however often it is tried; none is condemned, all are stored afterwards', async () => {
    await drain.consumer.runOnce(0);
    const voucherId = await saleWith(50, 50);
    await drain.databaseAway();
    for (let tries = 0; tries < 8; tries += 1) {
      await expect(drain.consumer.runOnce(0)).rejects.toThrow(/database/i);
      await drain.letPendingAge();
    }
    expect(await drain.pending()).toBe(50);
    expect(await drain.log.listDeadLetters(0, 10)).toEqual([]);
    await drain.databaseBack();
    await drain.consumer.runOnce(0);
    await drain.consumer.runOnce(0);
    expect(await drain.facts(voucherId)).toEqual(sold(50));
    expect(await drain.pending()).toBe(0);
  });
});

describe('a full Redis', () => {
  it('takes acknowledgements, so that stored orders free its memory', async () => {
    const voucherId = await saleWith(5, 5);
    await drain.redis.config('SET', 'maxmemory', '1');
    expect(await drain.consumer.runOnce(0)).toMatchObject({ stored: 5, acknowledged: 5 });
    expect(await drain.length()).toBe(0);
    await drain.redis.config('SET', 'maxmemory', '0');
    expect(await drain.facts(voucherId)).toEqual(sold(5));
  });

  it('leaves an entry pending that it cannot keep as a dead letter, and the others go on', async () => {
    const voucherId = await saleWith(5, 4);
    await drain.redis.xadd(drain.stream, '*', 'nonsense', 'x');
    await drain.buy(voucherId, purchases(1, 7));
    await drain.redis.config('SET', 'maxmemory', '1');
    expect(await drain.consumer.runOnce(0)).toMatchObject({ stored: 5, acknowledged: 5, deadLettered: 0 });
    expect(await drain.pending()).toBe(1);
    expect(drain.consumer.status().consumers[0]?.lastError).toMatch(/OOM/);
    await drain.redis.config('SET', 'maxmemory', '0');
    expect(await drain.consumer.runOnce(0)).toMatchObject({ deadLettered: 1 });
    expect(await drain.pending()).toBe(0);
    expect(await drain.facts(voucherId)).toEqual(sold(5));
  });
});

describe('a Redis that cannot save', () => {
  it('refuses everything for a while; nothing is lost and all resumes', async () => {
    const voucherId = await saleWith(5, 5);
    const [, dir = ''] = (await drain.redis.config('GET', 'dir')) as string[];
    // A folder under the snapshot's name makes each save fail.
    await mkdir(join(dir, 'dump.rdb', 'in-the-way'), { recursive: true });
    await drain.redis.config('SET', 'save', '3600 1');
    await drain.redis.bgsave();
    await vi.waitFor(async () => expect(await drain.redis.info('persistence')).toMatch(/rdb_last_bgsave_status:err/), {
      timeout: 10_000,
    });
    await expect(drain.consumer.runOnce(0)).rejects.toThrow(/MISCONF/);
    await drain.redis.config('SET', 'stop-writes-on-bgsave-error', 'no');
    expect(await drain.consumer.runOnce(0)).toMatchObject({ stored: 5, acknowledged: 5 });
    expect(await drain.facts(voucherId)).toEqual(sold(5));
    await drain.redis.config('SET', 'stop-writes-on-bgsave-error', 'yes');
    await rm(join(dir, 'dump.rdb'), { recursive: true });
  });
});

describe('an error that means something else than a missing group', () => {
  it('is named: a value of another type under the stream’s key', async () => {
    const process = await drain.process();
    await drain.redis.del(drain.stream);
    await drain.redis.set(drain.stream, 'no stream');
    await expect(process.get(StreamConsumer).runOnce(0)).rejects.toThrow(/WRONGTYPE/);
    await expect(process.get(StreamConsumer).runOnce(0)).rejects.toThrow(/WRONGTYPE/);
    await drain.redis.del(drain.stream);
    const voucherId = await saleWith(1, 1);
    expect(await process.get(StreamConsumer).runOnce(0)).toMatchObject({ stored: 1 });
    expect(await drain.facts(voucherId)).toEqual(sold(1));
    await drain.end(process);
  });

  it('is named: missing rights to make a group, and to read', async () => {
    const voucherId = await saleWith(1, 1);
    await drain.redis.call('ACL', 'SETUSER', 'default', '-xgroup');
    const process = await drain.process();
    await expect(process.get(StreamConsumer).runOnce(0)).rejects.toThrow(/NOPERM/);
    await drain.redis.call('ACL', 'SETUSER', 'default', '+xgroup', '-xreadgroup');
    await expect(process.get(StreamConsumer).runOnce(0)).rejects.toThrow(/NOPERM/);
    await drain.redis.call('ACL', 'SETUSER', 'default', '+xreadgroup');
    expect(await process.get(StreamConsumer).runOnce(0)).toMatchObject({ stored: 1 });
    expect(await drain.facts(voucherId)).toEqual(sold(1));
    await drain.end(process);
  });

  it('is no reason to make a group: a Redis that is away', async () => {
    const voucherId = await saleWith(3, 3);
    await drain.server.down();
    await expect(drain.consumer.runOnce(0)).rejects.toThrow();
    await expect(drain.consumer.runOnce(0)).rejects.toThrow();
    await drain.server.up();
    await vi.waitFor(() => drain.redis.ping(), { timeout: 10_000 });
    await vi.waitFor(async () => expect((await drain.consumer.runOnce(0)).read).toBeGreaterThanOrEqual(0), {
      timeout: 10_000,
    });
    expect(await drain.facts(voucherId)).toEqual(sold(3));
    await drain.openEpoch();
  });
});

describe('a frozen Redis', () => {
  it('is noticed by a timeout, and work goes on when it thaws', async () => {
    const voucherId = await saleWith(3, 3);
    drain.server.signal('SIGSTOP');
    try {
      await expect(drain.consumer.runOnce(0)).rejects.toThrow();
    } finally {
      drain.server.signal('SIGCONT');
    }
    await vi.waitFor(async () => expect((await drain.consumer.runOnce(0)).read).toBeGreaterThanOrEqual(0), {
      timeout: 10_000,
    });
    expect(await drain.facts(voucherId)).toEqual(sold(3));
  });
});
