import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { EpochRegister } from '#sale-register';
import { RebuildWishes } from './rebuild-wishes.js';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
  // The cache takes an entry made at instant 0 for one without a life.
  vi.advanceTimersByTime(1_000);
});
afterEach(() => {
  vi.useRealTimers();
});

function wishesOf(): { wishes: RebuildWishes; passed: string[] } {
  const passed: string[] = [];
  const epochs = {
    requestRebuild: (partition: number, voucherId: string | undefined, reason: string) =>
      void passed.push(`${partition} ${voucherId ?? 'partition'} ${reason}`),
  } as unknown as EpochRegister;
  return { wishes: new RebuildWishes(epochs), passed };
}

it('passes one wish on for a crowd, and again after a pause', () => {
  const { wishes, passed } = wishesOf();
  for (let count = 0; count < 1_000; count += 1) wishes.wish(0, '7', 'INCONSISTENT');
  expect(passed).toEqual(['0 7 INCONSISTENT']);
  vi.advanceTimersByTime(250);
  wishes.wish(0, '7', 'INCONSISTENT');
  expect(passed).toHaveLength(2);
});

it('asks for the partition of a closed sale, and for the sale itself only when it stays closed: a rebuild that ends calls for no other', () => {
  const { wishes, passed } = wishesOf();
  for (let ms = 0; ms < 4_000; ms += 500) {
    wishes.closed(0, '7');
    vi.advanceTimersByTime(500);
  }
  expect(new Set(passed)).toEqual(new Set(['0 partition EPOCH']));
  vi.advanceTimersByTime(1_500);
  wishes.closed(0, '7');
  expect(passed).toContain('0 7 EPOCH');
});
