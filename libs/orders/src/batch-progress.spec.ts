import { expect, it } from 'vitest';
import type { NewOrder } from '#orders';
import { BatchProgress } from './batch-progress.js';

const orders: NewOrder[] = ['10', '11', '10', '12', '11'].map((voucherId, index) => ({
  orderId: String(100 - index),
  userId: String(index + 1),
  voucherId,
  acceptedAtMs: 1_000,
}));

function drain(progress: BatchProgress): string[] {
  const tried: string[] = [];
  for (let group = progress.next(); group !== undefined; group = progress.next()) {
    tried.push(`${group.kind} ${group.positions.join(',')}`);
    progress.settle(
      group,
      group.positions.map(() => ({ kind: 'STORED' })),
    );
  }
  return tried;
}

it('tries the whole batch first, and is done where that settles it', () => {
  const progress = new BatchProgress(orders, 1_000);
  expect(drain(progress)).toEqual(['WHOLE 0,1,2,3,4']);
  expect(progress.results()).toHaveLength(5);
});

it('halves a group until one order stands alone, in the order of the batch', () => {
  const progress = new BatchProgress(orders, 1_000);
  const whole = progress.next();
  if (whole === undefined) throw new Error('no group');
  progress.halve(whole);
  const left = progress.next();
  if (left === undefined) throw new Error('no group');
  expect(left.positions).toEqual([0, 1]);
  progress.halve(left);
  expect(drain(progress)).toEqual(['WHOLE 0', 'WHOLE 1', 'WHOLE 2,3,4']);
});

it('judges the orders of a short voucher alone, the oldest first, after all others', () => {
  const progress = new BatchProgress(orders, 1_000);
  const whole = progress.next();
  if (whole === undefined) throw new Error('no group');
  progress.oneByOne(whole, new Set(['10']));
  const rest = progress.next();
  if (rest === undefined) throw new Error('no group');
  progress.oneByOne(rest, new Set(['11']));
  // Of one millisecond, the smaller id is the older order.
  expect(drain(progress)).toEqual(['WHOLE 3', 'ALONE 4', 'ALONE 2', 'ALONE 1', 'ALONE 0']);
});

it('defers what is left when the time for trouble is over, and only after a first trouble', () => {
  const progress = new BatchProgress(orders, 0);
  const whole = progress.next();
  if (whole === undefined) throw new Error('no group');
  expect([progress.firstTrouble(), progress.firstTrouble()]).toEqual([true, false]);
  progress.oneByOne(whole, new Set(['10']));
  const start = performance.now();
  while (performance.now() <= start);
  expect(progress.next()).toBeUndefined();
  expect(progress.results()).toEqual(Array(5).fill({ kind: 'DEFERRED' }));
});
