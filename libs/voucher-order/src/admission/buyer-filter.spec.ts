import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BuyerFilter } from './buyer-filter.js';

const userId = fc.bigInt({ min: 1n, max: 9_223_372_036_854_775_807n }).map(String);

describe('BuyerFilter', () => {
  it('never takes a buyer for a stranger, however many were added', () => {
    fc.assert(
      fc.property(fc.array(userId, { maxLength: 300 }), fc.integer({ min: 1, max: 300 }), (buyers, room) => {
        const filter = new BuyerFilter(room);
        for (const buyer of buyers) filter.add(buyer);
        expect(buyers.every((buyer) => filter.mayHold(buyer))).toBe(true);
      }),
    );
  });

  it.each([10, 100, 1_000, 4_096, 50_000])(
    'takes few strangers for %i buyers, also where ids follow one another',
    (buyers) => {
      const filter = new BuyerFilter(buyers);
      for (let id = 1; id <= buyers; id += 1) filter.add(String(id));
      let mistaken = 0;
      for (let id = buyers + 1; id <= buyers + 100_000; id += 1) if (filter.mayHold(String(id))) mistaken += 1;
      expect(mistaken / 100_000).toBeLessThan(0.002);
    },
  );

  it('takes about two to four bytes per buyer', () => {
    expect(BuyerFilter.bytesFor(1_000_000)).toBeLessThanOrEqual(4_000_000);
    expect(new BuyerFilter(1_000_000).bytes).toBe(BuyerFilter.bytesFor(1_000_000));
  });
});
