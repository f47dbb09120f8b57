import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LatencyHistogram } from './latency-histogram.js';

const filled = (values: readonly number[]): LatencyHistogram => {
  const histogram = new LatencyHistogram();
  for (const value of values) histogram.record(value);
  return histogram;
};

describe('LatencyHistogram', () => {
  it('names each quantile within one per cent of the exact one', () => {
    const durations = fc.array(fc.integer({ min: 0, max: 60_000_000 }), { minLength: 1, maxLength: 300 });
    fc.assert(
      fc.property(durations, fc.double({ min: 0.001, max: 1, noNaN: true }), (values, share) => {
        const sorted = [...values].sort((a, b) => a - b);
        const exact = sorted[Math.max(1, Math.ceil(share * sorted.length)) - 1] as number;
        const told = filled(values).quantileUs(share);
        expect(told).toBeGreaterThanOrEqual(exact);
        expect(told).toBeLessThanOrEqual(exact * 1.01 + 1);
      }),
    );
  });

  it('keeps count, largest and mean exactly', () => {
    const histogram = filled([1, 2, 3, 1_000_000]);
    expect([histogram.count, histogram.maxUs, histogram.meanUs]).toEqual([4, 1_000_000, 250_001.5]);
  });

  it('counts durations by interval, none lost', () => {
    const histogram = filled([500, 900, 1_500, 7_000, 9_999_999]);
    expect(histogram.countsUpTo([1_000, 2_000, 10_000])).toEqual([2, 1, 1, 1]);
  });

  it('says 0 where nothing was counted', () => {
    const histogram = new LatencyHistogram();
    expect([histogram.quantileUs(0.99), histogram.maxUs, histogram.meanUs]).toEqual([0, 0, 0]);
  });
});
