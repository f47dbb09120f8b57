import { Counter } from 'prom-client';
import type { OrderResult } from './order.types.js';

const storedTotal = new Counter({
  name: 'seckill_orders_stored_total',
  help: 'Orders stored by this process, each counted once',
});

const settledTotal = new Counter({
  name: 'seckill_orders_settled_total',
  help: 'Orders of finished batches by what became of them',
  labelNames: ['outcome'] as const,
});

/** Counts the results of one batch. */
export function countResults(results: readonly OrderResult[]): void {
  // Nearly all results of a batch are one and the same object: named once, not a thousand times.
  const counts = new Map<OrderResult, number>();
  for (const result of results) counts.set(result, (counts.get(result) ?? 0) + 1);
  for (const [result, count] of counts) {
    const outcome = result.kind === 'REJECTED' ? `rejected_${result.reason.toLowerCase()}` : result.kind.toLowerCase();
    settledTotal.inc({ outcome }, count);
    if (result.kind === 'STORED') storedTotal.inc(count);
  }
}
