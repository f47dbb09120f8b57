import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  disagreements,
  purchases,
  type Purchase,
  ReconciliationRoom,
} from '../../../test/support/reconciliation-room.js';
import { TestRedis } from '../../../test/support/services.js';
import { VoucherRebuild } from './voucher-rebuild.js';

let room: ReconciliationRoom;

beforeEach(async () => {
  room = await ReconciliationRoom.start();
});
afterEach(async () => {
  await room.destroy();
});

const V = '100';

async function agree(voucherId = V): Promise<void> {
  await room.drain();
  expect(disagreements(await room.inBothStores(voucherId))).toEqual([]);
  expect(await room.findings()).toEqual([]);
}

async function state(): Promise<string> {
  return (await room.epochs.state(0)).kind;
}

/** Waits for the connections after a restart. */
async function reachable(): Promise<void> {
  await vi.waitFor(async () => expect(await room.redis.ping()).toBe('PONG'), 10_000);
}

describe('Redis that lost everything', () => {
  it('refuses until it is rebuilt; then the stock is units less orders, and every former buyer hears his order', async () => {
    await room.onSale({ [V]: 40 });
    const buyers = purchases(30);
    await room.buy(V, buyers);
    await room.drain();
    await room.redis.flushall();
    expect(await room.buy(V, [{ userId: '900', orderId: '1900' }])).toEqual(['UNAVAILABLE']);
    const report = await room.rebuilds.rebuildPartition(0);
    expect(report).toMatchObject({ outcome: 'OPENED', vouchers: 1, marks: 30, marksSet: 30 });
    const again = buyers.map(({ userId }) => ({ voucherId: V, userId, orderId: `99${userId}` }));
    const answers = await room.register.admit(0, again, 5_000);
    expect(answers).toEqual(buyers.map(({ orderId }) => ({ kind: 'DUPLICATE', orderId })));
    expect(await room.log.stats(0)).toMatchObject({ length: 0 });
    const rush = await room.buy(V, purchases(20, 1_000));
    expect(rush.filter((kind) => kind === 'ACCEPTED')).toHaveLength(10);
    await agree();
  });

  it('stays open where another process opened it since it was seen closed', async () => {
    await room.onSale({ [V]: 5 });
    await room.redis.flushall();
    await room.rebuilds.rebuildPartition(0);
    const epoch = await room.epochs.state(0);
    const epochNumber = await room.orders.epochNumber(0);
    const late = await room.rebuilds.rebuildPartition(0, { onlyIfFree: true });
    expect(late).toMatchObject({ outcome: 'NOT_NEEDED', vouchers: 0 });
    expect(await room.epochs.state(0)).toEqual(epoch);
    expect(await room.orders.epochNumber(0)).toBe(epochNumber);
  });

  it('never stores a batch that was read before the loss; its orders go back through the register, or are rejected', async () => {
    await room.onSale({ [V]: 3 });
    const held = purchases(3);
    await room.buy(V, held);
    const epochNumber = await room.orders.epochNumber(0);
    await room.redis.flushall();
    await room.rebuilds.rebuildPartition(0);
    // Two other buyers come first, one of the held buyers buys anew.
    await room.buy(V, [...purchases(1, 500), { userId: held[0]!.userId, orderId: '5' }]);
    const orders = held.map((order) => ({ ...order, voucherId: V, acceptedAtMs: Date.now() }));
    const batch = await room.orders.createOrders({ partition: 0, epochNumber, orders });
    expect(batch).toMatchObject({ kind: 'STALE_EPOCH', epochNumber: epochNumber + 1 });
    const readmitted = [];
    for (const order of orders) readmitted.push((await room.repairs.readmit(0, order)).kind);
    expect(readmitted).toEqual(['HELD', 'READMITTED', 'NO_UNITS']);
    await agree();
  });

  it('waits for the transaction that is storing a batch, and counts what it stored', async () => {
    await room.onSale({ [V]: 5 });
    await room.buy(V, purchases(5));
    await room.sql.query('BEGIN');
    await room.sql.query('SELECT 1 FROM tb_seckill_voucher WHERE voucher_id = $1 FOR UPDATE', [V]);
    const storing = room.drain();
    await vi.waitFor(async () => {
      const waiting = await room.sql.query(`SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock'`);
      expect(waiting.rowCount).toBe(1);
    });
    await room.redis.flushall();
    const rebuilt = room.rebuilds.rebuildPartition(0);
    await vi.waitFor(async () => expect(await state()).toBe('RECONCILING'));
    await room.sql.query('COMMIT');
    await storing.catch(() => undefined);
    expect((await rebuilt)?.outcome).toBe('OPENED');
    await agree();
    expect((await room.inBothStores(V)).rows).toBeLessThanOrEqual(5);
    expect((await room.buy(V, purchases(9, 800))).filter((kind) => kind === 'ACCEPTED')).toHaveLength(
      5 - (await room.inBothStores(V)).rows,
    );
  });
});

describe('Redis that came back older', () => {
  it('is closed, and rebuilt from the record: no second order, no lost order, no mark of a rejected one', async () => {
    await room.onSale({ [V]: 10 });
    await room.buy(V, purchases(3));
    const rejected: Purchase = { userId: '60', orderId: '6000' };
    await room.buy(V, [rejected]);
    const [, dir] = (await room.redis.config('GET', 'dir')) as [string, string];
    const aof = join(dir, 'appendonlydir');
    await cp(aof, join(dir, 'older'), { recursive: true });
    // After the snapshot: one order is rejected and released, the others stored, and more are bought.
    await room.orders.rejectOrder(0, { ...rejected, voucherId: V }, 'DISCARDED', 'by a test');
    await room.register.release(0, { ...rejected, voucherId: V });
    await room.buy(V, purchases(4, 10));
    await room.drain();
    await room.server.down();
    await rm(aof, { recursive: true });
    await cp(join(dir, 'older'), aof, { recursive: true });
    await room.server.up();
    await reachable();
    expect(await state()).toBe('CLOSED');
    expect(await room.buy(V, purchases(1, 10))).toEqual(['UNAVAILABLE']);
    const report = await room.rebuilds.rebuildPartition(0);
    expect(report).toMatchObject({ outcome: 'OPENED', marks: 7, marksSet: 4, marksRemoved: 1 });
    await agree();
    expect((await room.inBothStores(V)).rows).toBe(7);
  });

  it('knows an order again whose commit the database lost too: the mark alone brings it back', async () => {
    await room.onSale({ [V]: 10 });
    await room.buy(V, purchases(2));
    await room.drain();
    await room.sql.query('DELETE FROM tb_voucher_order WHERE user_id = 2');
    await room.sql.query('UPDATE tb_seckill_voucher SET stock = stock + 1 WHERE voucher_id = $1', [V]);
    await room.server.down();
    await room.server.up();
    await reachable();
    expect(await room.rebuilds.rebuildPartition(0)).toMatchObject({ outcome: 'OPENED', entriesAppended: 1 });
    await agree();
    expect((await room.inBothStores(V)).orders).toEqual(['1:1000001', '2:1000002']);
  });
});

describe('damaged keys', () => {
  it('a stream or dead letters of another type are named and dropped, and the marks bring every order back', async () => {
    await room.onSale({ [V]: 10 });
    await room.buy(V, purchases(3));
    const logs = [room.keys.stream(0), room.keys.deadLetters(0)];
    const spoil = async () => {
      for (const key of logs) await room.redis.set(key, 'stray');
    };
    await spoil();
    expect(await room.buy(V, purchases(1, 20))).toEqual(['UNAVAILABLE']);
    expect(await room.findings()).toEqual(['LOG_UNUSABLE', 'LOG_UNUSABLE']);
    await room.reconciliation.pass({ actor: 'test', pauseMs: 10 });
    await agree();
    await spoil();
    expect(await room.rebuilds.rebuildVoucher(V, { onlyIfNeeded: true })).toMatchObject({ outcome: 'OPENED' });
    expect(await room.buy(V, purchases(1, 20))).toEqual(['ACCEPTED']);
    await agree();
  });

  it('of every sort end right: stray types, missing keys, unknown vouchers, entries and marks that contradict each other', async () => {
    await room.onSale({ [V]: 10, 101: 5, 102: 5 });
    await room.buy(V, purchases(3));
    await room.buy('101', purchases(2, 20));
    await room.drain();
    await room.buy(V, purchases(1, 50));
    const { redis, keys } = room;
    await redis.del(keys.epoch(0), keys.stock(0, V));
    await redis.hdel(keys.marks(0, V), '50');
    await redis.hset(keys.marks(0, V), '2', '777', 'no id', 'x');
    await redis.del(keys.sale(0, '101'));
    await redis.set(keys.sale(0, '101'), 'stray');
    await redis.del(keys.marks(0, '102'));
    await redis.rpush(keys.marks(0, '102'), 'stray');
    await redis.hset(keys.marks(0, '999'), '1', '1');
    await redis.xadd(keys.stream(0), '*', 'userId', '1', 'voucherId', '999', 'id', '999001');
    await redis.xadd(keys.stream(0), '*', 'nonsense', '1');
    expect((await room.rebuilds.rebuildPartition(0))?.outcome).toBe('OPENED');
    await room.drain();
    for (const voucherId of [V, '101', '102']) await agree(voucherId);
    expect((await room.inBothStores(V)).orders).toHaveLength(4);
  });
});

describe('another data history of the server', () => {
  it('a restart closes the partition, and the rebuild opens it again', async () => {
    await room.onSale({ [V]: 5 });
    await room.buy(V, purchases(2));
    await room.server.down();
    await room.server.up();
    await reachable();
    expect(await state()).toBe('CLOSED');
    expect(await room.buy(V, purchases(1, 9))).toEqual(['UNAVAILABLE']);
    expect((await room.rebuilds.rebuildPartition(0))?.outcome).toBe('OPENED');
    expect(await room.buy(V, purchases(1, 9))).toEqual(['ACCEPTED']);
    await agree();
  });

  it('a failover to another server and back closes the partition each time, though the process is the same', async () => {
    const other = await TestRedis.start();
    try {
      await room.onSale({ [V]: 5 });
      // A first replica gives the server a new history.
      const link = room.redis.duplicate({ port: other.port } as never);
      link.on('error', () => undefined);
      await vi.waitFor(async () => expect(await link.ping()).toBe('PONG'), 10_000);
      await link.call('REPLICAOF', '127.0.0.1', String(room.server.port));
      await vi.waitFor(async () => expect(await link.info('replication')).toContain('master_link_status:up'), 10_000);
      if ((await state()) !== 'OPEN') await room.rebuilds.rebuildPartition(0);
      await room.buy(V, purchases(2));
      const runId = /run_id:(\w+)/.exec(await room.redis.info('server'))?.[1];
      await room.redis.call('WAIT', '1', '5000');
      await link.call('REPLICAOF', 'NO', 'ONE');
      await room.redis.call('REPLICAOF', '127.0.0.1', String(other.port));
      await vi.waitFor(
        async () => expect(await room.redis.info('replication')).toContain('master_link_status:up'),
        10_000,
      );
      await link.call('WAIT', '1', '5000');
      await link.call('REPLICAOF', '127.0.0.1', '1');
      await room.redis.call('REPLICAOF', 'NO', 'ONE');
      link.disconnect();
      expect(/run_id:(\w+)/.exec(await room.redis.info('server'))?.[1]).toBe(runId);
      expect(await state()).toBe('CLOSED');
      expect(await room.buy(V, purchases(1, 9))).toEqual(['UNAVAILABLE']);
      expect((await room.rebuilds.rebuildPartition(0))?.outcome).toBe('OPENED');
      expect(await room.buy(V, purchases(1, 9))).toEqual(['ACCEPTED']);
      await agree();
    } finally {
      await other.destroy();
    }
  });
});

describe('several reconcilers', () => {
  it('racing for one partition end with it open and right, whoever wins', async () => {
    await room.onSale({ [V]: 20 });
    await room.buy(V, purchases(8));
    await room.drain();
    await room.redis.flushall();
    const second = await room.process();
    const { RebuildService } = await import('./rebuild.service.js');
    for (let round = 0; round < 3 && (await state()) !== 'OPEN'; round += 1) {
      const reports = await Promise.all([
        room.rebuilds.rebuildPartition(0),
        second.get(RebuildService).rebuildPartition(0),
      ]);
      const outcomes = reports.map((report) => report?.outcome);
      expect(outcomes.every((outcome) => outcome === 'OPENED' || outcome === 'LOST')).toBe(true);
    }
    expect(await state()).toBe('OPEN');
    await agree();
  });

  it('one that died midway is taken over, and can open nothing any more', async () => {
    await room.onSale({ [V]: 20 });
    await room.buy(V, purchases(8));
    await room.redis.flushall();
    const begun = await room.epochs.begin(0, 'deadbeef', undefined);
    const epoch = begun.kind === 'BEGUN' ? begun.value : '';
    const rebuild = room.get(VoucherRebuild);
    await rebuild.begin(0, V, epoch, 'deadbeef');
    expect(await state()).toBe('RECONCILING');
    expect((await room.rebuilds.rebuildPartition(0))?.outcome).toBe('OPENED');
    await expect(rebuild.begin(0, V, epoch, 'deadbeef')).rejects.toThrow('overtaken');
    expect((await room.epochs.open(0, epoch, [])).kind).toBe('LOST');
    await agree();
  });

  it('one that died over a single voucher leaves it closed only until the next look', async () => {
    await room.onSale({ [V]: 20, 101: 5 });
    const open = await room.epochs.state(0);
    await room.repairs.begin(0, V, 'value' in open ? open.value! : '', 'deadbeef');
    expect(await room.buy(V, purchases(1))).toEqual(['UNAVAILABLE']);
    expect(await room.buy('101', purchases(1, 5))).toEqual(['ACCEPTED']);
    expect(await room.findings()).toEqual(['SALE_MISSING']);
    await room.reconciliation.pass({ actor: 'test', pauseMs: 10 });
    expect(await room.buy(V, purchases(1))).toEqual(['ACCEPTED']);
    await agree();
  });

  it('a loss between the rebuilding and the opening is noticed by the opening', async () => {
    await room.onSale({ [V]: 20 });
    const epochs = room.epochs;
    const open = vi.spyOn(epochs, 'open').mockImplementationOnce(async (partition, value, ids) => {
      open.mockRestore();
      await room.redis.del(room.keys.stock(0, V));
      return epochs.open(partition, value, ids);
    });
    expect((await room.rebuilds.rebuildPartition(0))?.outcome).toBe('UNSETTLED');
    expect(await state()).toBe('RECONCILING');
    expect((await room.rebuilds.rebuildPartition(0))?.outcome).toBe('OPENED');
    await agree();
  });
});
