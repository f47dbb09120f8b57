import type { Call } from './history.js';
import type { SaleState } from './store-reader.js';

/** What a sale must come to, beside the invariants. */
export interface Expectations {
  /** The demand reached the units: then all of them must be sold. */
  readonly soldOut: boolean;
  /** Rows that the scenario wrote itself, by order id. */
  readonly planted?: ReadonlySet<string>;
  /** The scenario makes the record refuse orders; else every accepted order must be stored, not rejected. */
  readonly mayReject?: boolean;
  /** When the scenario made a store lose its data (`performance.now()`): orders of earlier calls may be lost. */
  readonly lossAtMs?: number;
}

/** The counts of one sale, for the table. */
export interface SaleCounts {
  readonly accepted: number;
  readonly stored: number;
  readonly rejected: number;
  readonly unknown: number;
}

const SHOWN = 5;

/**
 * Holds what the clients heard against what both stores hold, after all has come to rest. Answers the broken invariants, each named; none where all
 * is well. It uses no code of the product.
 */
export function checkSale(sale: SaleState, calls: readonly Call[], expected: Expectations): string[] {
  return [
    ...checkUnits(sale, expected),
    ...checkAccepted(sale, calls, expected),
    ...checkOnePerBuyer(sale, calls, expected),
    ...checkMarks(sale, expected),
    ...checkRefused(sale, calls, expected),
    ...checkAnswers(calls),
  ];
}

export function countSale(sale: SaleState, calls: readonly Call[]): SaleCounts {
  return {
    accepted: new Set(calls.flatMap((call) => (namesOwnOrder(call) ? [call.orderId] : []))).size,
    stored: sale.active.length,
    rejected: sale.inactive.length,
    unknown: calls.filter(({ knowledge }) => knowledge === 'UNKNOWN').length,
  };
}

function namesOwnOrder(call: Call): boolean {
  return (call.knowledge === 'ACCEPTED' || call.knowledge === 'DUPLICATE') && call.orderId !== undefined;
}

function some(what: string, values: readonly string[]): string[] {
  if (values.length === 0) return [];
  const rest = values.length > SHOWN ? `, and ${values.length - SHOWN} more` : '';
  return [`${what}: ${values.slice(0, SHOWN).join('; ')}${rest}`];
}

/** I1, I4 (units and stock), I5. */
function checkUnits(sale: SaleState, { soldOut }: Expectations): string[] {
  const { active, units, databaseStock, redisStock, redisUnits, marks } = sale;
  const broken: string[] = [];
  if (active.length > units) broken.push(`I1 oversold: ${active.length} active rows of ${units} units`);
  if (databaseStock !== units - active.length)
    broken.push(`I4 database stock is ${databaseStock}, units ${units} - active rows ${active.length}`);
  if (redisUnits !== String(units)) broken.push(`I4 Redis knows ${redisUnits} units, the database ${units}`);
  if (redisStock === null || Number(redisStock) + marks.size !== units)
    broken.push(`I4 Redis stock ${redisStock} + ${marks.size} marks differ from ${units} units`);
  if (soldOut && active.length !== units)
    broken.push(`I5 leaked units: ${active.length} of ${units} sold although more were wanted`);
  return broken;
}

/** I2: every order that a client was told of is stored under that id, or recorded as rejected. */
function checkAccepted(sale: SaleState, calls: readonly Call[], expected: Expectations): string[] {
  const { lossAtMs = 0, mayReject = false } = expected;
  const ended = new Set(sale.inactive.map(({ id }) => id));
  const rejected = new Set<string>();
  const rows = new Map([...sale.active, ...sale.inactive].map((row) => [row.id, row]));
  const letters = new Set(sale.deadLetters);
  const lost: string[] = [];
  const foreign: string[] = [];
  for (const call of calls) {
    if (!namesOwnOrder(call)) continue;
    const row = rows.get(call.orderId as string);
    if (!mayReject && call.sentAtMs > lossAtMs && ended.has(call.orderId as string))
      rejected.add(`order ${call.orderId} of user ${call.userId}`);
    if (row === undefined) {
      if (!letters.has(call.orderId as string) && call.sentAtMs > lossAtMs)
        lost.push(`order ${call.orderId} of user ${call.userId} (${call.code})`);
    } else if (row.userId !== call.userId) foreign.push(`order ${row.id} of user ${row.userId} told to ${call.userId}`);
  }
  return [
    ...some('I2 accepted orders are lost', [...new Set(lost)]),
    ...some('I2 foreign orders', [...new Set(foreign)]),
    ...some('I2 accepted although there was nothing to give: rejected later', [...rejected]),
  ];
}

/** I3. A second order after a recorded rejection is a new purchase. */
function checkOnePerBuyer(sale: SaleState, calls: readonly Call[], { lossAtMs = 0 }: Expectations): string[] {
  const activeOf = new Map<string, string[]>();
  for (const { id, userId } of sale.active) activeOf.set(userId, [...(activeOf.get(userId) ?? []), id]);
  const twice = [...activeOf]
    .filter(([, ids]) => ids.length > 1)
    .map(([user, ids]) => `user ${user}: ${ids.join(', ')}`);
  const ended = new Set(sale.inactive.map(({ id }) => id));
  const told = new Map<string, Set<string>>();
  for (const call of calls) {
    if (!namesOwnOrder(call) || call.sentAtMs <= lossAtMs || ended.has(call.orderId as string)) continue;
    told.set(call.userId, (told.get(call.userId) ?? new Set()).add(call.orderId as string));
  }
  const several = [...told]
    .filter(([, ids]) => ids.size > 1)
    .map(([user, ids]) => `user ${user}: ${[...ids].join(', ')}`);
  return [...some('I3 two active rows', twice), ...some('I3 one user was told several orders', several)];
}

/** I4 (marks), I6: marks and active rows (or dead letters) are the same orders. */
function checkMarks(sale: SaleState, { planted = new Set() }: Expectations): string[] {
  const rowOf = new Map(sale.active.map((row) => [row.userId, row.id]));
  const letters = new Set(sale.deadLetters);
  const bare: string[] = [];
  const other: string[] = [];
  for (const [user, id] of sale.marks) {
    const row = rowOf.get(user);
    if (row === undefined) {
      if (!letters.has(id)) bare.push(`user ${user}, order ${id}`);
    } else if (row !== id) other.push(`user ${user}: mark ${id}, row ${row}`);
  }
  const unmarked = sale.active.filter(({ id, userId }) => !planted.has(id) && !sale.marks.has(userId));
  return [
    ...some('I4 marks without row or dead letter', bare),
    ...some('I4 marks name another order than the row', other),
    ...some(
      'I6 rows without admission',
      unmarked.map(({ id, userId }) => `user ${userId}, order ${id}`),
    ),
  ];
}

/**
 * I7: who was only refused has no order; whose every call was answered has an order that an acceptance or a doubt had named. (A duplicate names it
 * too late: where nothing before it could have made the order, a refusal did.)
 */
function checkRefused(sale: SaleState, calls: readonly Call[], expected: Expectations): string[] {
  const { planted = new Set() } = expected;
  const callsOf = new Map<string, Call[]>();
  for (const call of calls) callsOf.set(call.userId, [...(callsOf.get(call.userId) ?? []), call]);
  const effects: string[] = [];
  const unnamed: string[] = [];
  const uncalled: string[] = [];
  for (const { id, userId } of sale.active) {
    if (planted.has(id)) continue;
    const own = callsOf.get(userId);
    if (own === undefined) uncalled.push(`order ${id} of user ${userId}`);
    else if (own.every(({ knowledge }) => knowledge === 'REFUSED')) effects.push(`order ${id} of user ${userId}`);
    else if (own.every(({ code }) => !code.startsWith('NO_ANSWER'))) {
      const named = own.some(
        (call) => (call.knowledge === 'ACCEPTED' && call.orderId === id) || call.candidateOrderId === id,
      );
      if (!named) unnamed.push(`order ${id} of user ${userId}`);
    }
  }
  const open = [...callsOf].filter(([, own]) => own.at(-1)?.knowledge === 'UNKNOWN').map(([user]) => `user ${user}`);
  return [
    ...some('I7 "refused" had an effect', effects),
    ...some('I7 no answer had named the stored order', unnamed),
    ...some('I6 orders of users who never asked', uncalled),
    ...some('I7 unresolved doubt', open),
  ];
}

/** P4: no answer outside the contract, and none that never comes. */
function checkAnswers(calls: readonly Call[]): string[] {
  const defects = calls.filter(({ knowledge }) => knowledge === 'DEFECT').map(({ code }) => code);
  const silent = calls.filter(({ code }) => code === 'NO_ANSWER_IN_TIME').map(({ userId }) => `user ${userId}`);
  return [
    ...some('P4 answers outside the contract', [...new Set(defects)]),
    ...some('P4 calls without any answer', silent),
  ];
}
