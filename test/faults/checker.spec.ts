import { describe, expect, it } from 'vitest';
import { checkSale } from './checker.js';
import type { Call, Knowledge } from './history.js';
import { Random } from './random.js';
import type { SaleState } from './store-reader.js';

/** Two units, both sold: to user 1 as order 11, to user 2 as order 12. User 3 heard "sold out". */
const sound: SaleState = {
  partition: 0,
  units: 2,
  databaseStock: 0,
  active: [
    { id: '11', userId: '1', status: 1 },
    { id: '12', userId: '2', status: 1 },
  ],
  inactive: [],
  redisStock: '0',
  redisUnits: '2',
  marks: new Map([
    ['1', '11'],
    ['2', '12'],
  ]),
  deadLetters: [],
};

function call(userId: string, knowledge: Knowledge, code: string, orderId?: string, candidateOrderId?: string): Call {
  return { voucherId: '7', userId, knowledge, code, orderId, candidateOrderId, sentAtMs: 5, tookMs: 1 };
}

const calls: readonly Call[] = [
  call('1', 'ACCEPTED', 'QUEUED', '11'),
  call('2', 'UNKNOWN', 'OUTCOME_UNKNOWN', undefined, '12'),
  call('2', 'DUPLICATE', 'DUPLICATE_ORDER', '12'),
  call('3', 'REFUSED', 'SOLD_OUT'),
];

const check = (sale: Partial<SaleState>, heard: readonly Call[] = calls) =>
  checkSale({ ...sound, ...sale }, heard, { soldOut: true }).join('\n');

describe('the checker of the fault harness', () => {
  it('finds nothing in a sound sale', () => {
    expect(checkSale(sound, calls, { soldOut: true })).toEqual([]);
  });

  it.each<[string, Partial<SaleState>, readonly Call[]]>([
    ['I1 oversold', { units: 1, databaseStock: -1, redisUnits: '1', redisStock: '-1' }, calls],
    ['I2 accepted orders are lost', { active: sound.active.slice(1), databaseStock: 1 }, calls],
    ['I2 foreign orders', {}, [...calls, call('4', 'ACCEPTED', 'QUEUED', '11')]],
    [
      'I2 accepted although there was nothing to give',
      { inactive: [{ id: '15', userId: '5', status: 7 }] },
      [...calls, call('5', 'ACCEPTED', 'QUEUED', '15')],
    ],
    ['I3 two active rows', { active: [...sound.active, { id: '16', userId: '1', status: 1 }], units: 3 }, calls],
    ['I3 one user was told several orders', {}, [...calls, call('1', 'ACCEPTED', 'QUEUED', '19')]],
    ['I4 database stock', { databaseStock: 1 }, calls],
    ['I4 Redis stock', { redisStock: '1' }, calls],
    ['I4 Redis knows', { redisUnits: '3' }, calls],
    ['I4 marks without row', { marks: new Map([...sound.marks, ['9', '99']]) }, calls],
    ['I4 marks name another order', { marks: new Map([...sound.marks, ['1', '99']]) }, calls],
    ['I5 leaked units', { units: 3, databaseStock: 1, redisUnits: '3', redisStock: '1' }, calls],
    ['I6 rows without admission', { marks: new Map([['2', '12']]), redisStock: '1' }, calls],
    ['I6 orders of users who never asked', {}, calls.slice(1)],
    ['I7 "refused" had an effect', {}, [call('1', 'REFUSED', 'SOLD_OUT'), ...calls.slice(1)]],
    [
      'I7 no answer had named the stored order',
      {},
      [call('1', 'UNKNOWN', 'OUTCOME_UNKNOWN', undefined, '77'), call('1', 'REFUSED', 'SOLD_OUT'), ...calls.slice(1)],
    ],
    ['I7 unresolved doubt', {}, [...calls, call('3', 'UNKNOWN', 'NO_ANSWER')]],
    ['P4 answers outside the contract', {}, [...calls, call('3', 'DEFECT', 'HTTP_500_INTERNAL')]],
    [
      'P4 calls without any answer',
      {},
      [...calls, call('3', 'UNKNOWN', 'NO_ANSWER_IN_TIME'), call('3', 'REFUSED', 'SOLD_OUT')],
    ],
  ])('names what is broken: %s', (fault, sale, heard) => {
    expect(check(sale, heard)).toContain(fault);
  });

  it('lets go what a store lost, and nothing that was sent after the loss', () => {
    const lost = {
      ...sound,
      active: sound.active.slice(1),
      marks: new Map([['2', '12']]),
      databaseStock: 1,
      redisStock: '1',
    };
    expect(checkSale(lost, calls, { soldOut: false, lossAtMs: 10 })).toEqual([]);
    expect(checkSale(lost, calls, { soldOut: false, lossAtMs: 1 }).join()).toContain('I2 accepted orders are lost');
  });
});

describe('the choices', () => {
  it('are the same for the same seed, and others for another', () => {
    const draw = (seed: number) => {
      const random = new Random(seed).derive('F5');
      return Array.from({ length: 20 }, () => random.between(0, 1000));
    };
    expect(draw(7)).toEqual(draw(7));
    expect(draw(7)).not.toEqual(draw(8));
  });
});
