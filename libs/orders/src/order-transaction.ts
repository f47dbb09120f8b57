import { Injectable } from '@nestjs/common';
import { Database, type Session, sqlStateOf, type Statement } from '#database';
import { arrayLiteral, orderArrays } from './order-arrays.js';
import {
  LOOK_UP_ORDERS,
  REJECT_ORDERS,
  STORE_NEW_ORDERS,
  STORE_ORDERS,
  TURN_INTO_NO_UNITS,
  type LookUpRow,
  type StoreOrdersRow,
} from './order-statements.js';
import type { OrderEntry } from '#order-stream';
import type { NewOrder, OrderResult } from './order.types.js';
import { sharedPartitionLock } from './partition-fence.js';
import { standingOf, type Standing } from './standing.js';

/** Orders to store in one transaction. ALONE: one order, for which "no unit" is a final answer. */
export interface Attempt {
  readonly partition: number;
  readonly epochNumber: number;
  readonly orders: readonly NewOrder[];
  readonly alone: boolean;
}

/** What one transaction came to. All but DONE have left no trace. */
export type AttemptOutcome =
  | { readonly kind: 'DONE'; readonly results: readonly OrderResult[] }
  /** null: the partition is not registered. */
  | { readonly kind: 'STALE_EPOCH'; readonly epochNumber: number | null }
  /** The database has fewer units of these vouchers than the batch wants. */
  | { readonly kind: 'SHORT'; readonly vouchers: ReadonlySet<string> }
  /** Something changed while the transaction ran: do it again. */
  | { readonly kind: 'UNSETTLED' };

/** Who wrote a ledger line. */
export const ACTOR = 'orders';

const STORED: OrderResult = { kind: 'STORED' };
const NO_UNITS: OrderResult = { kind: 'REJECTED', reason: 'NO_UNITS' };

/** Carries an outcome out of a transaction that must roll back. */
class Abandoned extends Error {
  constructor(readonly outcome: AttemptOutcome) {
    super(outcome.kind);
  }
}

const UNIQUE_VIOLATION = '23505';

/** Stores orders in one transaction: insert, guarded cut of the stock, look-up of what was not inserted, commit. */
@Injectable()
export class OrderTransaction {
  /** Whether orders that are sent again are about: then the insert that minds them comes first. */
  private repeatsAbout = false;

  constructor(private readonly database: Database) {}

  /**
   * Nearly always every order of a batch is new, and an insert that need not mind conflicts takes half the time. It fails as a whole where one is
   * not new; then a second transaction minds them, and so do the following batches until one is all new again.
   * @throws what Database.transaction throws; nothing else is repeated here
   */
  async run(attempt: Attempt): Promise<AttemptOutcome> {
    if (!attempt.alone && !this.repeatsAbout) {
      try {
        return await this.once(attempt, STORE_NEW_ORDERS);
      } catch (error) {
        if (sqlStateOf(error) !== UNIQUE_VIOLATION) throw error;
        this.repeatsAbout = true;
      }
    }
    const outcome = await this.once(attempt, STORE_ORDERS);
    if (!attempt.alone && outcome.kind === 'DONE') {
      this.repeatsAbout = outcome.results.some((result) => result.kind !== 'STORED');
    }
    return outcome;
  }

  private async once(attempt: Attempt, statement: Statement): Promise<AttemptOutcome> {
    try {
      const results = await this.database.transaction((_manager, session) => store(session, attempt, statement), {
        opening: sharedPartitionLock(attempt.partition),
      });
      return { kind: 'DONE', results };
    } catch (error) {
      if (error instanceof Abandoned) return error.outcome;
      throw error;
    }
  }
}

async function store(session: Session, attempt: Attempt, statement: Statement): Promise<readonly OrderResult[]> {
  const { orders, partition, epochNumber, alone } = attempt;
  const { ids, users, vouchers, acceptedMs } = orderArrays(orders);
  const values = [partition, epochNumber, ids, users, vouchers, acceptedMs];
  const [row] = await session.query<StoreOrdersRow>(statement, values);
  if (row === undefined) throw new Error('the storing statement answered no row');
  if (row.epoch_number !== String(epochNumber)) {
    const current = row.epoch_number === null ? null : Number(row.epoch_number);
    throw new Abandoned({ kind: 'STALE_EPOCH', epochNumber: current });
  }
  if (row.short_vouchers.length > 0) {
    if (!alone) throw new Abandoned({ kind: 'SHORT', vouchers: new Set(row.short_vouchers) });
    await session.query(TURN_INTO_NO_UNITS, [orders[0]?.orderId, ACTOR]);
    return [NO_UNITS];
  }
  if (row.stored_ids === null) return new Array<OrderResult>(orders.length).fill(STORED);
  return settleMissing(session, orders, new Set(row.stored_ids));
}

/** Some rows were not inserted: says why for each of them, and records the rejection of buyers who have another active order. */
async function settleMissing(
  session: Session,
  orders: readonly NewOrder[],
  storedIds: ReadonlySet<string>,
): Promise<OrderResult[]> {
  const repeated = idsGivenTwice(orders);
  const results = new Array<OrderResult | undefined>(orders.length);
  const missing: number[] = [];
  orders.forEach((order, position) => {
    // Of an id that stands in the batch twice only the record can say which of the two was stored.
    if (storedIds.has(order.orderId) && !repeated.has(order.orderId)) results[position] = STORED;
    else missing.push(position);
  });
  const asked = missing.map((position) => orders[position] as NewOrder);
  const standings = await lookUp(session, asked);
  const refused = new Map<string, RefusedOrder>();
  missing.forEach((position, index) => {
    const order = asked[index] as NewOrder;
    const standing = standings[index] as Standing;
    results[position] = resultOf(order, standing, refused);
  });
  await recordOtherOrders(session, [...refused.values()]);
  return results as OrderResult[];
}

interface RefusedOrder {
  readonly order: NewOrder;
  readonly activeOrderId: string;
}

function resultOf(order: NewOrder, standing: Standing, refused: Map<string, RefusedOrder>): OrderResult {
  switch (standing.kind) {
    case 'SETTLED':
      return standing.result;
    case 'UNKNOWN_VOUCHER':
      return { kind: 'UNKNOWN_VOUCHER' };
    case 'NOTHING':
      throw new Abandoned({ kind: 'UNSETTLED' });
    case 'OTHER_ORDER': {
      const { activeOrderId } = standing;
      const first = refused.get(order.orderId);
      if (first === undefined) refused.set(order.orderId, { order, activeOrderId });
      else if (first.order.userId !== order.userId || first.order.voucherId !== order.voucherId) {
        return { kind: 'FOREIGN_ID' };
      }
      return { kind: 'REJECTED', reason: 'OTHER_ACTIVE_ORDER', activeOrderId };
    }
  }
}

async function recordOtherOrders(session: Session, refused: readonly RefusedOrder[]): Promise<void> {
  if (refused.length === 0) return;
  const { ids, users, vouchers, acceptedMs } = orderArrays(refused.map(({ order }) => order));
  const others = arrayLiteral(refused.map(({ activeOrderId }) => activeOrderId));
  const written = await session.query(REJECT_ORDERS, [
    ids,
    users,
    vouchers,
    acceptedMs,
    others,
    'OTHER_ACTIVE_ORDER',
    null,
    ACTOR,
  ]);
  // Somebody else wrote one of these ids since the look-up.
  if (written.length < refused.length) throw new Abandoned({ kind: 'UNSETTLED' });
}

/** The standing of each order in the record, in the order of the question. */
export async function lookUp(session: Session, orders: readonly OrderEntry[]): Promise<Standing[]> {
  if (orders.length === 0) return [];
  const rows = await session.query<LookUpRow>(LOOK_UP_ORDERS, [
    arrayLiteral(orders.map((order) => order.orderId)),
    arrayLiteral(orders.map((order) => order.userId)),
    arrayLiteral(orders.map((order) => order.voucherId)),
  ]);
  return orders.map((order, index) => {
    const row = rows[index];
    if (row === undefined) throw new Error('the look-up answered fewer rows than it was asked for');
    return standingOf(order, row);
  });
}

function idsGivenTwice(orders: readonly NewOrder[]): Set<string> {
  const seen = new Set<string>();
  const twice = new Set<string>();
  for (const { orderId } of orders) {
    if (seen.has(orderId)) twice.add(orderId);
    seen.add(orderId);
  }
  return twice;
}
