import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { NewOrder, OrderResult } from '#orders';
import { openOrderRoom, type OrderRoom } from '../../../test/support/order-room.js';

/** What the record should hold and answer, in plain words; the implementation is one SQL statement and its exceptions. */
class Model {
  readonly stock = new Map<string, number>();
  readonly units = new Map<string, number>();
  readonly orders = new Map<string, NewOrder & { status: 'ACTIVE' | 'CANCELLED' | 'REJECTED'; result?: OrderResult }>();

  create(batch: readonly NewOrder[]): OrderResult[] {
    const results = new Map<NewOrder, OrderResult>();
    const short = this.shortVouchers(batch);
    const together = batch.filter((order) => !short.has(order.voucherId));
    const insertable = this.insertable(together);
    for (const order of insertable) this.store(order);
    const refused: [NewOrder, OrderResult][] = [];
    for (const order of together) {
      if (insertable.has(order)) results.set(order, { kind: 'STORED' });
      else results.set(order, this.why(order, refused));
    }
    for (const [order, result] of refused) this.orders.set(order.orderId, { ...order, status: 'REJECTED', result });
    const alone = batch.filter((order) => short.has(order.voucherId));
    alone.sort((a, b) => a.acceptedAtMs - b.acceptedAtMs || Number(a.orderId) - Number(b.orderId));
    for (const order of alone) results.set(order, this.createAlone(order));
    return batch.map((order) => results.get(order) as OrderResult);
  }

  cancel(orderId: string): boolean {
    const order = this.orders.get(orderId);
    if (order?.status !== 'ACTIVE') return false;
    order.status = 'CANCELLED';
    this.stock.set(order.voucherId, (this.stock.get(order.voucherId) ?? 0) + 1);
    return true;
  }

  active(voucherId: string): string[] {
    return [...this.orders.values()]
      .filter((order) => order.voucherId === voucherId && order.status === 'ACTIVE')
      .sort((a, b) => Number(a.userId) - Number(b.userId))
      .map((order) => `${order.userId}:${order.orderId}`);
  }

  private shortVouchers(batch: readonly NewOrder[]): Set<string> {
    const short = new Set<string>();
    for (;;) {
      const wanted = new Map<string, number>();
      for (const { voucherId } of this.insertable(batch.filter((order) => !short.has(order.voucherId)))) {
        wanted.set(voucherId, (wanted.get(voucherId) ?? 0) + 1);
      }
      const found = [...wanted].filter(([voucherId, count]) => count > (this.stock.get(voucherId) ?? 0));
      if (found.length === 0) return short;
      for (const [voucherId] of found) short.add(voucherId);
    }
  }

  /** By voucher, buyer and id: the first that meets neither its id nor an active order of its buyer. */
  private insertable(batch: readonly NewOrder[]): Set<NewOrder> {
    const taken = new Set<NewOrder>();
    const sorted = batch.toSorted(
      (a, b) =>
        Number(a.voucherId) - Number(b.voucherId) ||
        Number(a.userId) - Number(b.userId) ||
        Number(a.orderId) - Number(b.orderId),
    );
    for (const order of sorted) {
      const before = [...taken];
      const free =
        this.stock.has(order.voucherId) &&
        !this.orders.has(order.orderId) &&
        this.activeOf(order) === undefined &&
        !before.some((other) => other.orderId === order.orderId) &&
        !before.some((other) => other.userId === order.userId && other.voucherId === order.voucherId);
      if (free) taken.add(order);
    }
    return taken;
  }

  private createAlone(order: NewOrder): OrderResult {
    if (this.insertable([order]).size === 0) {
      const refused: [NewOrder, OrderResult][] = [];
      const result = this.why(order, refused);
      for (const [one, why] of refused) this.orders.set(one.orderId, { ...one, status: 'REJECTED', result: why });
      return result;
    }
    if ((this.stock.get(order.voucherId) ?? 0) > 0) {
      this.store(order);
      return { kind: 'STORED' };
    }
    const result: OrderResult = { kind: 'REJECTED', reason: 'NO_UNITS' };
    this.orders.set(order.orderId, { ...order, status: 'REJECTED', result });
    return result;
  }

  private why(order: NewOrder, refused: [NewOrder, OrderResult][]): OrderResult {
    const same = this.orders.get(order.orderId);
    if (same !== undefined) {
      if (same.userId !== order.userId || same.voucherId !== order.voucherId) return { kind: 'FOREIGN_ID' };
      if (same.status === 'REJECTED') return same.result as OrderResult;
      return { kind: same.status === 'CANCELLED' ? 'ALREADY_CANCELLED' : 'ALREADY_STORED' };
    }
    if (!this.stock.has(order.voucherId)) return { kind: 'UNKNOWN_VOUCHER' };
    const first = refused.find(([other]) => other.orderId === order.orderId);
    if (first !== undefined && (first[0].userId !== order.userId || first[0].voucherId !== order.voucherId)) {
      return { kind: 'FOREIGN_ID' };
    }
    const result: OrderResult = {
      kind: 'REJECTED',
      reason: 'OTHER_ACTIVE_ORDER',
      activeOrderId: this.activeOf(order) as string,
    };
    if (first === undefined) refused.push([order, result]);
    return result;
  }

  private activeOf(order: NewOrder): string | undefined {
    for (const other of this.orders.values()) {
      if (other.status === 'ACTIVE' && other.userId === order.userId && other.voucherId === order.voucherId) {
        return other.orderId;
      }
    }
    return undefined;
  }

  private store(order: NewOrder): void {
    this.orders.set(order.orderId, { ...order, status: 'ACTIVE' });
    this.stock.set(order.voucherId, (this.stock.get(order.voucherId) ?? 0) - 1);
  }
}

const KNOWN_VOUCHERS = ['1', '2', '3'];

const anyOrder = fc.record({
  orderId: fc.integer({ min: 1, max: 16 }).map(String),
  userId: fc.integer({ min: 1, max: 5 }).map(String),
  voucherId: fc.constantFrom(...KNOWN_VOUCHERS, '9'),
  acceptedAtMs: fc.integer({ min: 1_764_500_000_000, max: 1_764_500_000_003 }),
});
const anyStep = fc.oneof(
  { weight: 5, arbitrary: fc.array(anyOrder, { minLength: 1, maxLength: 14 }).map((batch) => ({ batch })) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 16 }).map((id) => ({ cancel: String(id) })) },
);

let room: OrderRoom;
beforeAll(async () => (room = await openOrderRoom()));
afterAll(() => room.close());

async function reset(stocks: readonly number[]): Promise<Model> {
  await room.admin.query(
    'DELETE FROM tb_voucher_order; DELETE FROM tb_order_rejection; DELETE FROM tb_stock_ledger; DELETE FROM tb_voucher',
  );
  const model = new Model();
  for (const [index, voucherId] of KNOWN_VOUCHERS.entries()) {
    const stock = stocks[index] ?? 0;
    await room.putVoucher(voucherId, stock);
    model.stock.set(voucherId, stock);
    model.units.set(voucherId, stock);
  }
  return model;
}

/** Whether an order was stored now or before is told apart only for the log. */
function plain(result: OrderResult): OrderResult {
  return result.kind === 'ALREADY_STORED' ? { kind: 'STORED' } : result;
}

it('answers and stores what the model says, over random batches with duplicates, replays, foreign ids and too little stock', async () => {
  const epochNumber = await room.repository.epochNumber(0);
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 3, maxLength: 3 }),
      fc.array(anyStep, { minLength: 1, maxLength: 5 }),
      async (stocks, steps) => {
        const model = await reset(stocks);
        for (const step of steps) {
          if ('cancel' in step) {
            if (!model.cancel(step.cancel)) continue;
            await room.admin.query(
              `WITH cancelled AS (UPDATE tb_voucher_order SET status = 4 WHERE id = $1 RETURNING voucher_id)
               UPDATE tb_seckill_voucher v SET stock = stock + 1 FROM cancelled c WHERE v.voucher_id = c.voucher_id`,
              [step.cancel],
            );
            continue;
          }
          const expected = model.create(step.batch);
          const outcome = await room.repository.createOrders({ partition: 0, epochNumber, orders: step.batch });
          if (outcome.kind !== 'DONE') throw new Error(outcome.kind);
          expect(outcome.results.map(plain)).toEqual(expected.map(plain));
          for (const voucherId of KNOWN_VOUCHERS) {
            const rows = await room.rowsOf(voucherId);
            expect(rows).toEqual(model.active(voucherId));
            expect(rows.length).toBeLessThanOrEqual(model.units.get(voucherId) ?? 0);
            expect(await room.stockOf(voucherId)).toBe((model.units.get(voucherId) ?? 0) - rows.length);
          }
        }
      },
    ),
    { numRuns: 60 },
  );
}, 120_000);
