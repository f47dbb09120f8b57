import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { DrainFixture, purchases } from '../../../test/support/drain-fixture.js';
import { StreamConsumer } from './index.js';

let drain: DrainFixture;
let nextVoucher = 700;

beforeAll(async () => {
  drain = await DrainFixture.start();
});
afterAll(async () => {
  await drain.destroy();
});
afterEach(async () => {
  await drain.databaseBack();
  await drain.openEpoch();
  await drain.consumer.runOnce(0);
  await drain.consumer.runOnce(0);
  expect(await drain.pending()).toBe(0);
});

const HOUR_MS = 3_600_000;

/** A consumer that holds `count` orders which it could not store yet. */
async function ordersInHand(count: number, consumer: StreamConsumer): Promise<string> {
  nextVoucher += 1;
  const voucherId = String(nextVoucher);
  await drain.sale(voucherId, 5);
  await consumer.runOnce(0);
  await drain.buy(voucherId, purchases(count, nextVoucher * 100));
  await drain.databaseAway();
  await expect(consumer.runOnce(0)).rejects.toThrow(/database/i);
  expect(consumer.status().consumers[0]).toMatchObject({ inHand: count });
  return voucherId;
}

/** Redis comes back empty; the partition is rebuilt from a database that knows of no order, with `units` free. */
async function redisLosesAll(voucherId: string, units: number): Promise<void> {
  await drain.redis.flushall();
  await drain.databaseBack();
  await drain.orders.raiseEpochNumber(0);
  await drain.openEpoch();
  const beginMs = Date.now() - HOUR_MS;
  await drain.register.publish(0, { voucherId, beginMs, endMs: beginMs + 25 * HOUR_MS, units, unitsVersion: 1 });
}

const ids = () => Array.from({ length: 3 }, (_, at) => String(1_000_000 + nextVoucher * 100 + at));

describe('a batch in hand while Redis loses its data', () => {
  it('goes back through the register under the same ids, and is stored once', async () => {
    const voucherId = await ordersInHand(3, drain.consumer);
    await redisLosesAll(voucherId, 5);
    expect(await drain.consumer.runOnce(0)).toMatchObject({ readmitted: 3, stored: 3 });
    expect(await drain.facts(voucherId)).toEqual({ rows: 3, rejected: 0, databaseStock: 2, unitsLeft: 2, marks: 3 });
    expect([...(await drain.reader.findByIds(ids())).keys()].sort()).toEqual(ids());
  });

  it('ends as recorded rejections where its units went to others meanwhile', async () => {
    const voucherId = await ordersInHand(3, drain.consumer);
    await redisLosesAll(voucherId, 5);
    await drain.buy(voucherId, purchases(4, 5));
    await drain.consumer.runOnce(0);
    await drain.consumer.runOnce(0);
    expect(await drain.facts(voucherId)).toEqual({ rows: 5, rejected: 2, databaseStock: 0, unitsLeft: 0, marks: 5 });
    const found = [...(await drain.reader.findByIds(ids())).values()];
    expect(found.filter(({ reason }) => reason === 'LOST_RIGHT')).toHaveLength(2);
  });

  it('leaves a buyer his other order where he bought again meanwhile', async () => {
    const voucherId = await ordersInHand(3, drain.consumer);
    await redisLosesAll(voucherId, 5);
    const again = { userId: String(nextVoucher * 100), orderId: '4242' };
    await drain.buy(voucherId, [again]);
    await drain.consumer.runOnce(0);
    await drain.consumer.runOnce(0);
    expect(await drain.register.readMark(0, voucherId, again.userId)).toBe('4242');
    expect(await drain.facts(voucherId)).toEqual({ rows: 3, rejected: 1, databaseStock: 2, unitsLeft: 2, marks: 3 });
    await drain.sql.query("DELETE FROM tb_voucher_order WHERE id = '4242'");
  });

  it('waits while the register is closed, says so, and holds up nobody else', async () => {
    const voucherId = await ordersInHand(3, drain.consumer);
    await redisLosesAll(voucherId, 5);
    await drain.redis.del(drain.keys.epoch(0));
    expect(await drain.consumer.runOnce(0)).toMatchObject({ readmitted: 0 });
    const [status] = drain.consumer.status().consumers;
    expect(status).toMatchObject({ unsettled: 3, lastError: expect.stringContaining('closed') as unknown });
    await drain.openEpoch();
    expect(await drain.consumer.runOnce(0)).toMatchObject({ readmitted: 3, stored: 3 });
    expect(await drain.facts(voucherId)).toMatchObject({ rows: 3, rejected: 0, unitsLeft: 2 });
  });

  it('is rejected durably when the process ends before the register opens: no accepted order is without an end', async () => {
    const leaving = await drain.process();
    const voucherId = await ordersInHand(3, leaving.get(StreamConsumer));
    await redisLosesAll(voucherId, 5);
    await drain.redis.del(drain.keys.epoch(0));
    await leaving.get(StreamConsumer).runOnce(0);
    await drain.end(leaving);
    expect(await drain.facts(voucherId)).toEqual({ rows: 0, rejected: 3, databaseStock: 5, unitsLeft: 5, marks: 0 });
    const found = [...(await drain.reader.findByIds(ids())).values()];
    expect(found.map(({ status, reason }) => [status, reason])).toEqual(ids().map(() => ['REJECTED', 'LOST_RIGHT']));
  });

  it('is settled by what the database knows where another process stored it', async () => {
    const voucherId = await ordersInHand(3, drain.consumer);
    await drain.databaseBack();
    const other = await drain.process();
    await drain.letPendingAge();
    expect(await other.get(StreamConsumer).runOnce(0)).toMatchObject({ stored: 3 });
    await drain.orders.raiseEpochNumber(0);
    expect(await drain.consumer.runOnce(0)).toMatchObject({ readmitted: 0, rejected: 0 });
    expect(drain.consumer.status().consumers[0]).toMatchObject({ inHand: 0, unsettled: 0 });
    await drain.end(other);
    expect(await drain.facts(voucherId)).toEqual({ rows: 3, rejected: 0, databaseStock: 2, unitsLeft: 2, marks: 3 });
  });
});

describe('an order left for a locked voucher while Redis loses its data', () => {
  it('goes back through the register as soon as the loss is noticed', async () => {
    const voucherId = await lockedOrder();
    await redisLosesAll(voucherId, 5);
    await drain.sql.query('ROLLBACK');
    // The next purchase of anybody shows that the data is another.
    await drain.buy(voucherId, purchases(1, 77));
    await drain.consumer.runOnce(0);
    await drain.consumer.runOnce(0);
    expect(await drain.facts(voucherId)).toEqual({ rows: 2, rejected: 0, databaseStock: 3, unitsLeft: 3, marks: 2 });
    expect([...(await drain.reader.findByIds(ids())).keys()]).toEqual([ids()[0]]);
  });

  it('goes back through the register although nobody buys any more', async () => {
    const voucherId = await lockedOrder();
    await redisLosesAll(voucherId, 5);
    await drain.sql.query('ROLLBACK');
    for (let pass = 0; pass < 3; pass += 1) await drain.consumer.runOnce(0);
    expect(await drain.facts(voucherId)).toEqual({ rows: 1, rejected: 0, databaseStock: 4, unitsLeft: 4, marks: 1 });
    expect([...(await drain.reader.findByIds(ids())).keys()]).toEqual([ids()[0]]);
  });

  it('stays pending and is stored once where only the fence was raised', async () => {
    const voucherId = await lockedOrder();
    await drain.orders.raiseEpochNumber(0);
    await drain.buy(voucherId, purchases(1, 78));
    await drain.consumer.runOnce(0);
    await drain.sql.query('ROLLBACK');
    await drain.consumer.runOnce(0);
    expect(await drain.facts(voucherId)).toEqual({ rows: 2, rejected: 0, databaseStock: 3, unitsLeft: 3, marks: 2 });
    expect(drain.consumer.status().consumers[0]).toMatchObject({ inHand: 0, unsettled: 0 });
  });

  /** One order that the consumer could not store because an operator holds its voucher's row. */
  async function lockedOrder(): Promise<string> {
    nextVoucher += 1;
    const voucherId = String(nextVoucher);
    await drain.sale(voucherId, 5);
    await drain.consumer.runOnce(0);
    await drain.sql.query('BEGIN');
    await drain.sql.query('SELECT FROM tb_seckill_voucher WHERE voucher_id = $1 FOR UPDATE', [voucherId]);
    await drain.buy(voucherId, purchases(1, nextVoucher * 100));
    expect(await drain.consumer.runOnce(0)).toMatchObject({ deferred: 1 });
    return voucherId;
  }
});

describe('a batch in hand while the fence is raised', () => {
  it('is stored under the new number where its entries still stand in the stream', async () => {
    const voucherId = await ordersInHand(3, drain.consumer);
    await drain.databaseBack();
    await drain.orders.raiseEpochNumber(0);
    expect(await drain.consumer.runOnce(0)).toMatchObject({ stored: 3, readmitted: 0, acknowledged: 3 });
    expect(await drain.facts(voucherId)).toEqual({ rows: 3, rejected: 0, databaseStock: 2, unitsLeft: 2, marks: 3 });
  });
});
