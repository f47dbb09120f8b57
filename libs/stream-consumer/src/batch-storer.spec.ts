import { describe, expect, it } from 'vitest';
import type { BatchOutcome, OrderBatch, OrderRepository } from '#orders';
import type { OrderLog, SaleRegister } from '#sale-register';
import type { StockLedger } from '#orders';
import type { Batch, HeldOrder } from './batch.js';
import { BatchStorer } from './batch-storer.js';
import { noCounts } from './consume-counts.js';
import { SettlementQueue } from './settlement-queue.js';
import { VoucherPauses } from './voucher-pauses.js';

function held(at: number, deliveries = 1, voucherId = '1'): HeldOrder {
  const order = { orderId: String(at), userId: String(at), voucherId };
  return { entryId: `${at}-0`, order, fields: {}, deliveries };
}

/** A storer over a repository that fails as `fails` says; keeps the sizes of all transactions tried. */
function storerOver(fails: (batch: OrderBatch) => boolean, deferredVoucher?: string) {
  const tried: number[] = [];
  const stored: string[] = [];
  const left: string[] = [];
  const createOrders = (batch: OrderBatch): Promise<BatchOutcome> => {
    tried.push(batch.orders.length);
    if (fails(batch)) return Promise.reject(new Error('the connection was lost'));
    const results = batch.orders.map((order) => {
      if (order.voucherId === deferredVoucher) return { kind: 'DEFERRED' as const };
      stored.push(order.orderId);
      return { kind: 'STORED' as const };
    });
    return Promise.resolve({ kind: 'DONE', results });
  };
  const settlements = new SettlementQueue(0, {} as OrderLog, {} as SaleRegister, {} as StockLedger, () => undefined);
  const storer = new BatchStorer(
    { partition: 0, batchSize: 64, maxDeliveries: 3 },
    { createOrders } as OrderRepository,
    new VoucherPauses(),
    settlements,
    (order) => left.push(order.entryId),
    () => undefined,
  );
  return { storer, tried, stored, left, settlements };
}

const batchOf = (orders: HeldOrder[]): Batch => ({ epochNumber: 1, orders });

/** As the loop does: again after each failure, until the batch is empty. Answers how often it failed. */
async function untilEmpty(storer: BatchStorer, batch: Batch): Promise<number> {
  for (let failures = 0; ; failures += 1) {
    try {
      await storer.store(batch, noCounts());
      return failures;
    } catch {
      expect(failures).toBeLessThan(50);
    }
  }
}

describe('BatchStorer', () => {
  it('takes a whole batch into one transaction', async () => {
    const { storer, tried, stored } = storerOver(() => false);
    await untilEmpty(storer, batchOf(Array.from({ length: 64 }, (_, at) => held(at + 1))));
    expect(tried).toEqual([64]);
    expect(stored).toHaveLength(64);
  });

  it('sets an order aside that breaks every transaction it is in, and stores all others', async () => {
    const { storer, stored, left } = storerOver(({ orders }) => orders.some(({ orderId }) => orderId === '7'));
    const failures = await untilEmpty(storer, batchOf(Array.from({ length: 64 }, (_, at) => held(at + 1))));
    expect(left).toEqual(['7-0']);
    expect(new Set(stored).size).toBe(63);
    expect(failures).toBeLessThanOrEqual(12);
  });

  it('keeps the batch through an outage, and comes back to large transactions after it', async () => {
    let away = 5;
    const { storer, tried, stored, left } = storerOver(() => (away -= 1) >= 0);
    await untilEmpty(storer, batchOf(Array.from({ length: 64 }, (_, at) => held(at + 1))));
    expect(tried.slice(0, 6)).toEqual([64, 32, 16, 8, 4, 2]);
    expect(stored).toHaveLength(64);
    expect(left).toEqual([]);
    await untilEmpty(storer, batchOf(Array.from({ length: 64 }, (_, at) => held(at + 101))));
    expect(tried.at(-1)).toBe(64);
  });

  it('tries what was handed out too often alone and last, so that whatever it breaks it breaks alone', async () => {
    const { storer, tried, stored } = storerOver(() => false);
    await untilEmpty(storer, batchOf([held(1, 9), held(2), held(3, 9), held(4, 3)]));
    expect(tried).toEqual([2, 1, 1]);
    expect(stored).toEqual(['2', '4', '1', '3']);
  });

  it('leaves orders of a locked voucher pending without trying them again at once', async () => {
    const { storer, tried, left, stored } = storerOver(() => false, '2');
    await untilEmpty(storer, batchOf([held(1), held(2, 1, '2')]));
    await untilEmpty(storer, batchOf([held(3, 1, '2'), held(4)]));
    expect(stored).toEqual(['1', '4']);
    expect(left).toEqual(['2-0', '3-0']);
    expect(tried).toEqual([2, 1]);
  });
});
