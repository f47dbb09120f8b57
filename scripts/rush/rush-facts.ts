import type { Crowd } from './crowd.js';
import type { SaleFacts, SaleView } from './sale-view.js';
import type { RushFacts } from './verdict.js';

const REPEATS_OF_BUYERS = 2_000;
const REPEATS_OF_REFUSED = 200;
const ASKED_AT_ONCE = 32;

export interface AcceptedOrder {
  readonly buyer: number;
  readonly userId: string;
  readonly orderId: string;
}

/** The orders that buyers hold by what they heard. */
export function acceptedOrders(crowd: Crowd, userId: (buyer: number) => string): AcceptedOrder[] {
  return crowd.heard.flatMap((heard, buyer) =>
    heard?.code === 'QUEUED' ? [{ buyer, userId: userId(buyer), orderId: heard.orderId ?? '' }] : [],
  );
}

/** Compares what was heard with what is on record. Pure. */
export function compareRecord(
  accepted: readonly AcceptedOrder[],
  orders: NonNullable<SaleFacts['orders']>,
): Pick<RushFacts, 'stored' | 'found' | 'rejected' | 'lost' | 'doubleBuyers' | 'unheard'> {
  const record = new Map(orders.map((order) => [order.orderId, order]));
  const standings = accepted.map(({ orderId, userId }) => {
    const order = record.get(orderId);
    return order === undefined || order.userId !== userId ? 'LOST' : order.rejected ? 'REJECTED' : 'FOUND';
  });
  const active = orders.filter(({ rejected }) => !rejected);
  const heardOf = new Set(accepted.map(({ orderId }) => orderId));
  return {
    stored: active.length,
    found: standings.filter((standing) => standing === 'FOUND').length,
    rejected: standings.filter((standing) => standing === 'REJECTED').length,
    lost: standings.filter((standing) => standing === 'LOST').length,
    doubleBuyers: active.length - new Set(active.map(({ userId }) => userId)).size,
    unheard: active.filter(({ orderId }) => !heardOf.has(orderId)).length,
  };
}

/** Without the stores: each accepted order is asked for, as its buyer. What nobody heard of cannot be seen then. */
export async function askForEach(
  view: SaleView,
  accepted: readonly AcceptedOrder[],
): Promise<Pick<RushFacts, 'stored' | 'found' | 'rejected' | 'lost' | 'doubleBuyers' | 'unheard'>> {
  const counts = { STORED: 0, REJECTED: 0, QUEUED: 0, UNKNOWN: 0 };
  let next = 0;
  const work = async (): Promise<void> => {
    for (let at = next++; at < accepted.length; at = next++) {
      const { orderId, buyer } = accepted[at] as AcceptedOrder;
      counts[await view.standing(orderId, buyer)] += 1;
    }
  };
  await Promise.all(Array.from({ length: ASKED_AT_ONCE }, work));
  const { STORED: found, REJECTED: rejected, QUEUED: queued, UNKNOWN: unknown } = counts;
  return { stored: found, found, rejected, lost: queued + unknown, doubleBuyers: undefined, unheard: undefined };
}

/** Everything the verdict rests on. */
export async function gatherFacts(
  crowd: Crowd,
  view: SaleView,
  { units, userId, signal }: { units: number; userId: (buyer: number) => string; signal: AbortSignal },
): Promise<RushFacts> {
  const accepted = acceptedOrders(crowd, userId);
  const { orders, ...sale } = await view.facts();
  const record = orders === undefined ? await askForEach(view, accepted) : compareRecord(accepted, orders);
  const repeats = await repeat(crowd, accepted, record.rejected === 0, signal);
  const inDoubt = crowd.heard.filter(
    (heard) => heard === undefined || heard.code === 'NO_ANSWER' || heard.code === 'OUTCOME_UNKNOWN',
  ).length;
  return {
    buyers: crowd.heard.length,
    units,
    accepted: accepted.length,
    inDoubt,
    sharedIds: accepted.length - new Set(accepted.map(({ orderId }) => orderId)).size,
    ...record,
    ...sale,
    ...repeats,
    defects: [...crowd.answers].reduce((sum, [code, count]) => sum + (isDefect(code) ? count : 0), 0),
  };
}

const isDefect = (code: string): boolean => /^HTTP |^INTERNAL|^MALFORMED_ANSWER$|^UNAUTHENTICATED$|^INVALID/.test(code);

/** Some of those who hold an order, and some who were told that it is sold out, ask again. */
async function repeat(
  crowd: Crowd,
  accepted: readonly AcceptedOrder[],
  holds: boolean,
  signal: AbortSignal,
): Promise<Pick<RushFacts, 'repeated' | 'repeatedWrong'>> {
  if (!holds) return { repeated: 0, repeatedWrong: 0 };
  const refused = crowd.heard.flatMap((heard, buyer) => (heard?.code === 'SOLD_OUT' ? [buyer] : []));
  const buyers = [
    ...accepted.slice(0, REPEATS_OF_BUYERS).map(({ buyer }) => buyer),
    ...refused.slice(0, REPEATS_OF_REFUSED),
  ];
  const said = await crowd.repeat(buyers, signal);
  const wrong = said.filter((now, at) => {
    const before = crowd.heard[buyers[at] as number];
    if (before?.code !== 'QUEUED') return now.code !== before?.code;
    return now.code !== 'DUPLICATE_ORDER' || now.orderId !== before.orderId;
  });
  return { repeated: said.length, repeatedWrong: wrong.length };
}
