import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { explainFinding, FINDING_KINDS, findingKey, type Finding, type OrderStanding } from './findings.js';
import {
  inWorkingOrder,
  judge,
  judgeBuyer,
  judgeSale,
  type BuyerFacts,
  type RecordFacts,
  type SaleFacts,
} from './rules.js';

const place = { voucherId: '17', partition: 0 };
const sound: Extract<SaleFacts, { kind: 'PRESENT' }> = {
  kind: 'PRESENT',
  stock: 6,
  marks: 4,
  units: 10,
  unitsVersion: 1,
  beginMs: 1_000,
  endMs: 2_000,
};
const record: RecordFacts = { units: 10, unitsVersion: 1, stock: 6, activeOrders: 4, beginMs: 1_000, endMs: 2_000 };

function buyer(facts: Partial<BuyerFacts> & { standing?: OrderStanding; markId?: string }): BuyerFacts {
  const { standing, markId, ...rest } = facts;
  const mark = standing === undefined ? undefined : { orderId: markId ?? '100', standing };
  return { userId: '7', mark, onTheWay: [], activeOrderId: undefined, ...rest };
}

describe('the rules for one buyer', () => {
  const cases: [string, BuyerFacts, Partial<Finding> | undefined][] = [
    ['nothing at all', buyer({}), undefined],
    ['a mark whose order is stored', buyer({ standing: 'ACTIVE', activeOrderId: '100' }), undefined],
    ['a mark whose entry is on its way', buyer({ standing: 'UNKNOWN', onTheWay: ['100'] }), undefined],
    ['a mark that nothing else knows', buyer({ standing: 'UNKNOWN' }), { kind: 'ENTRY_LOST', orderId: '100' }],
    [
      'a mark that nothing knows, beside a foreign entry of the buyer',
      buyer({ standing: 'UNKNOWN', onTheWay: ['101'] }),
      { kind: 'ENTRY_LOST', orderId: '100' },
    ],
    ['an order without mark', buyer({ activeOrderId: '100' }), { kind: 'MARK_LOST', source: 'ORDER', orderId: '100' }],
    ['an entry without mark', buyer({ onTheWay: ['100'] }), { kind: 'MARK_LOST', source: 'ENTRY', orderId: '100' }],
    [
      'two entries without mark: the older one counts',
      buyer({ onTheWay: ['100', '99'] }),
      { kind: 'MARK_LOST', source: 'ENTRY', orderId: '100' },
    ],
    [
      'an order and an entry without mark: the order counts',
      buyer({ onTheWay: ['101'], activeOrderId: '100' }),
      { kind: 'MARK_LOST', source: 'ORDER', orderId: '100' },
    ],
    [
      'a mark of another id than the active order',
      buyer({ standing: 'UNKNOWN', activeOrderId: '90' }),
      { kind: 'MARK_OF_OTHER_ORDER', orderId: '100', activeOrderId: '90' },
    ],
    [
      'the same while the entry of the marked id is on its way',
      buyer({ standing: 'UNKNOWN', activeOrderId: '90', onTheWay: ['100'] }),
      undefined,
    ],
    [
      'a mark of a rejected order whose buyer has another active one',
      buyer({ standing: 'SETTLED', activeOrderId: '90' }),
      { kind: 'MARK_OF_OTHER_ORDER', orderId: '100', activeOrderId: '90' },
    ],
    [
      'a mark of a rejected order',
      buyer({ standing: 'SETTLED' }),
      { kind: 'RELEASE_LOST', standing: 'SETTLED', orderId: '100' },
    ],
    [
      "a mark of somebody else's order",
      buyer({ standing: 'FOREIGN' }),
      { kind: 'RELEASE_LOST', standing: 'FOREIGN', orderId: '100' },
    ],
  ];

  it.each(cases)('%s', (_, facts, expected) => {
    const finding = judgeBuyer(place, facts);
    if (expected === undefined) expect(finding).toBeUndefined();
    else expect(finding).toEqual(expect.objectContaining({ ...place, userId: '7', ...expected }));
  });

  it('a buyer with one right to one order is never a finding, and a marked one without any always is', () => {
    const standings = fc.constantFrom<OrderStanding>('ACTIVE', 'SETTLED', 'FOREIGN', 'UNKNOWN');
    fc.assert(
      fc.property(standings, fc.boolean(), fc.boolean(), (standing, onItsWay, other) => {
        const activeOrderId = standing === 'ACTIVE' ? '100' : other ? '90' : undefined;
        const onTheWay = onItsWay && standing === 'UNKNOWN' ? ['100'] : [];
        const agrees = standing === 'ACTIVE' || onTheWay.length > 0;
        const finding = judgeBuyer(place, buyer({ standing, onTheWay, activeOrderId }));
        expect(finding === undefined).toBe(agrees);
      }),
    );
  });
});

describe('the rules for the numbers of a sale', () => {
  it('a sale that agrees has no finding', () => {
    expect(judgeSale({ ...place, sale: sound, record })).toEqual([]);
  });

  it.each([
    [7, -1],
    [5, 1],
    [-2, 8],
  ])('a stock of %d is named with what it lacks: %d', (stock, missing) => {
    expect(judgeSale({ ...place, sale: { ...sound, stock }, record })).toEqual([
      { kind: 'COUNTER_DRIFT', ...place, counters: { stock, marks: 4, units: 10 }, missing },
    ]);
  });

  it('units that differ name both sides with their versions', () => {
    const sale = { ...sound, units: 12, stock: 8, unitsVersion: 2 };
    expect(judgeSale({ ...place, sale, record })).toEqual([
      {
        kind: 'UNITS_DIFFER',
        ...place,
        register: { units: 12, unitsVersion: 2 },
        record: { units: 10, unitsVersion: 1 },
      },
    ]);
  });

  it('equal units differ only where the record has the higher version', () => {
    expect(judgeSale({ ...place, sale: { ...sound, unitsVersion: 0 }, record })[0]?.kind).toBe('UNITS_DIFFER');
    expect(judgeSale({ ...place, sale: { ...sound, unitsVersion: 2 }, record })).toEqual([]);
  });

  it('a record that an operator changed is named', () => {
    expect(judgeSale({ ...place, sale: sound, record: { ...record, stock: 0 } })).toEqual([
      { kind: 'RECORD_ALTERED', ...place, units: 10, stock: 0, activeOrders: 4 },
    ]);
  });

  it('more active orders than units are an alarm', () => {
    const kinds = judgeSale({ ...place, sale: sound, record: { ...record, activeOrders: 11, stock: 0 } }).map(
      (f) => f.kind,
    );
    expect(kinds).toEqual(['RECORD_ALTERED', 'OVERSOLD']);
  });

  it('an unusable sale is missing, whatever its numbers', () => {
    const sale: SaleFacts = { kind: 'UNUSABLE', cause: 'no stock' };
    expect(judgeSale({ ...place, sale, record })).toEqual([{ kind: 'SALE_MISSING', ...place, cause: 'no stock' }]);
  });

  it('another window is named', () => {
    expect(judgeSale({ ...place, sale: { ...sound, endMs: 2_001 }, record })[0]?.kind).toBe('WINDOW_DIFFERS');
  });
});

describe('findings', () => {
  const all = judge(
    { ...place, sale: { ...sound, stock: 7, units: 11 }, record: { ...record, activeOrders: 12, endMs: 9 } },
    [
      buyer({ standing: 'SETTLED' }),
      buyer({ activeOrderId: '1' }),
      buyer({ standing: 'UNKNOWN' }),
      buyer({ standing: 'UNKNOWN', activeOrderId: '90' }),
    ],
  );

  it('come in the order of the table', () => {
    expect(all.map((finding) => finding.kind)).toEqual([
      'ENTRY_LOST',
      'MARK_LOST',
      'MARK_OF_OTHER_ORDER',
      'RELEASE_LOST',
      'UNITS_DIFFER',
      'RECORD_ALTERED',
      'WINDOW_DIFFERS',
      'OVERSOLD',
    ]);
    expect(inWorkingOrder([...all].reverse()).map((f) => f.kind)).toEqual(all.map((f) => f.kind));
  });

  it('each say what they mean and what a repair does', () => {
    for (const finding of all) {
      const { meaning, repair } = explainFinding(finding);
      expect(meaning.length).toBeGreaterThan(10);
      expect(repair.length).toBeGreaterThan(10);
    }
    expect(new Set(all.map(findingKey)).size).toBe(all.length);
    expect(new Set(FINDING_KINDS).size).toBe(FINDING_KINDS.length);
  });

  it('compare equal over two looks while stock and marks move together', () => {
    const [first] = judgeSale({ ...place, sale: { ...sound, stock: 7 }, record });
    const [second] = judgeSale({ ...place, sale: { ...sound, stock: 6, marks: 5 }, record });
    expect(first && findingKey(first)).toBe(second && findingKey(second));
  });
});
