import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { disagreements, purchases, ReconciliationRoom } from '../../../test/support/reconciliation-room.js';

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

describe('what a rebuild brings on sale', () => {
  it('a voucher that was stored while the register was closed', async () => {
    await room.voucher('105', 2);
    expect(await room.buy('105', purchases(1))).toEqual(['UNAVAILABLE']);
    await room.rebuilds.rebuildPartition(0);
    expect(await room.buy('105', purchases(3))).toEqual(['ACCEPTED', 'ACCEPTED', 'SOLD_OUT']);
    await agree('105');
  });

  it('ended sales after the opening, so that their buyers hear their orders', async () => {
    await room.onSale({ [V]: 5 });
    await room.buy(V, purchases(1));
    await room.drain();
    await room.sql.query(`UPDATE tb_seckill_voucher SET end_time = now() - interval '1 s' WHERE voucher_id = $1`, [V]);
    await room.redis.flushall();
    expect(await room.rebuilds.rebuildPartition(0)).toMatchObject({ outcome: 'OPENED', vouchers: 0 });
    expect(await room.rebuilds.rebuildMissing(0)).toBe(1);
    expect(await room.buy(V, [{ userId: '1', orderId: '8' }, ...purchases(1, 7)])).toEqual(['DUPLICATE', 'ENDED']);
    expect(await room.rebuilds.rebuildMissing(0)).toBe(0);
    await agree();
  });

  it('a new sale of a voucher has the stock and the marks of its own, and the old orders stay readable', async () => {
    await room.onSale({ [V]: 3 });
    await room.buy(V, purchases(3));
    await room.drain();
    // The old sale's orders are cancelled, and the voucher is offered anew with other units and another window.
    await room.sql.query('UPDATE tb_voucher_order SET status = 4 WHERE voucher_id = $1', [V]);
    await room.sql.query(
      `UPDATE tb_seckill_voucher SET stock = 2, units = 2, units_version = 2, end_time = now() + interval '2 days' WHERE voucher_id = $1`,
      [V],
    );
    expect(await room.rebuilds.rebuildVoucher(V)).toMatchObject({ outcome: 'OPENED', marks: 0, marksRemoved: 3 });
    expect(await room.buy(V, [{ userId: '1', orderId: '41' }, ...purchases(2, 70)])).toEqual([
      'ACCEPTED',
      'ACCEPTED',
      'SOLD_OUT',
    ]);
    await agree();
    const old = await room.sql.query('SELECT 1 FROM tb_voucher_order WHERE voucher_id = $1 AND status = 4', [V]);
    expect(old.rowCount).toBe(3);
  });

  it('is idempotent, and leaves a sound sale alone where it is only wanted if needed', async () => {
    await room.onSale({ [V]: 5 });
    await room.buy(V, purchases(2));
    await room.drain();
    const before = await room.inBothStores(V);
    for (let time = 0; time < 2; time += 1) {
      expect(await room.rebuilds.rebuildVoucher(V)).toMatchObject({ outcome: 'OPENED', marks: 2, marksSet: 0 });
      expect(await room.inBothStores(V)).toEqual(before);
    }
    expect(await room.rebuilds.rebuildVoucher(V, { onlyIfNeeded: true })).toMatchObject({ outcome: 'NOT_NEEDED' });
    expect(await room.rebuilds.rebuildVoucher('4711')).toMatchObject({ outcome: 'UNKNOWN_VOUCHER' });
    await agree();
  });
});
