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
  const counts = new Map<string, number>();
  for (const result of results) {
    const outcome = result.kind === 'REJECTED' ? `rejected_${result.reason.toLowerCase()}` : result.kind.toLowerCase();
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  }
  for (const [outcome, count] of counts) settledTotal.inc({ outcome }, count);
  storedTotal.inc(counts.get('stored') ?? 0);
}
