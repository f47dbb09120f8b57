import { describe, expect, it } from 'vitest';
import { compareRecord } from './rush-facts.js';
import { exitCodeOf, judgeRush, type RushFacts } from './verdict.js';

const good: RushFacts = {
  buyers: 20_000,
  units: 500,
  accepted: 500,
  inDoubt: 0,
  sharedIds: 0,
  stored: 500,
  found: 500,
  rejected: 0,
  lost: 0,
  doubleBuyers: 0,
  unheard: 0,
  unitsLeft: 0,
  marks: 500,
  pending: 0,
  deadLetters: 0,
  differences: [],
  repeated: 700,
  repeatedWrong: 0,
  defects: 0,
};

const broken = (facts: Partial<RushFacts>): string[] =>
  judgeRush({ ...good, ...facts })
    .filter(({ kept }) => kept === false)
    .map(({ promise }) => promise);

describe('judgeRush', () => {
  it('keeps every promise where everything agrees', () => {
    expect(broken({})).toEqual([]);
    expect(exitCodeOf(judgeRush(good))).toBe(0);
    expect(broken({ buyers: 300, accepted: 300, stored: 300, found: 300, marks: 300, unitsLeft: 200 })).toEqual([]);
  });

  it.each<[string, Partial<RushFacts>, string]>([
    [
      'a unit that was not sold',
      { accepted: 499, stored: 499, marks: 499, unitsLeft: 1 },
      'every unit is sold, and no more',
    ],
    ['a buyer left in doubt', { inDoubt: 1 }, 'every unit is sold, and no more'],
    ['one row too many', { stored: 501 }, 'never oversold'],
    ['an accepted order without a row', { stored: 499, lost: 1 }, 'nothing accepted is lost'],
    ['an accepted order not stored in time', { stored: 499 }, 'what was accepted is stored'],
    ['a buyer with two orders', { doubleBuyers: 1 }, 'one user, one order'],
    ['one id for two buyers', { sharedIds: 1 }, 'one user, one order'],
    ['an order nobody heard of', { unheard: 1 }, 'one user, one order'],
    ['a leaked unit', { unitsLeft: 1 }, 'stock + marks = units in Redis'],
    ['a sale that Redis cannot tell', { unitsLeft: NaN, marks: NaN }, 'stock + marks = units in Redis'],
    ['an entry left behind', { pending: 1 }, 'nothing is left on its way'],
    ['a dead letter', { deadLetters: 1 }, 'nothing is left on its way'],
    ['a difference that the audit names', { differences: ['MARK_LOST'] }, 'Redis, stream and database agree'],
    ['a repeat that hears something else', { repeatedWrong: 1 }, 'who asks again hears his own order'],
    ['an answer that is a defect', { defects: 1 }, 'no defect in any answer'],
  ])('breaks for %s', (_, facts, promise) => {
    expect(broken(facts)).toContain(promise);
    expect(exitCodeOf(judgeRush({ ...good, ...facts }))).toBe(1);
  });

  it('says of what was not looked at neither kept nor broken', () => {
    const promises = judgeRush({ ...good, stored: undefined, lost: undefined, marks: undefined, unitsLeft: undefined });
    expect(promises.filter(({ kept }) => kept === undefined).map(({ promise }) => promise)).toEqual([
      'what was accepted is stored',
      'nothing accepted is lost',
      'never oversold',
      'stock + marks = units in Redis',
    ]);
    expect(exitCodeOf(promises)).toBe(0);
  });
});

describe('judgeRush, through the API alone', () => {
  const apiOnly = { marks: undefined, doubleBuyers: undefined, unheard: undefined, differences: undefined };

  it('lets those who hold an order stand for the marks', () => {
    expect(broken(apiOnly)).toEqual([]);
    expect(broken({ ...apiOnly, unitsLeft: 1 })).toEqual(['stock + marks = units in Redis']);
  });
});

describe('compareRecord', () => {
  const accepted = [
    { buyer: 0, userId: '10', orderId: '1' },
    { buyer: 1, userId: '11', orderId: '2' },
    { buyer: 2, userId: '12', orderId: '3' },
    { buyer: 3, userId: '13', orderId: '4' },
  ];

  it('finds each accepted order as a row of that very buyer, rejected, or lost; and what nobody heard of', () => {
    const record = compareRecord(accepted, [
      { orderId: '1', userId: '10', rejected: false },
      { orderId: '2', userId: '11', rejected: true },
      { orderId: '3', userId: '99', rejected: false },
      { orderId: '7', userId: '10', rejected: false },
    ]);
    expect(record).toEqual({ stored: 3, found: 1, rejected: 1, lost: 2, doubleBuyers: 1, unheard: 1 });
  });
});
