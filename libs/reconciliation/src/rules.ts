import {
  FINDING_KINDS,
  type Finding,
  type OrderStanding,
  type SaleCounters,
  type UnitsAt,
  type WindowAt,
} from './findings.js';

/** What is known of one buyer of one voucher, read in the order mark, stream, dead letters, moved part of the stream, database. */
export interface BuyerFacts {
  readonly userId: string;
  /** The order the mark names, and what that id is to this buyer. Undefined: the buyer is not marked. */
  readonly mark: { readonly orderId: string; readonly standing: OrderStanding } | undefined;
  /** This buyer's orders in the stream or among the dead letters, oldest first, without those that are SETTLED, FOREIGN or ACTIVE. */
  readonly onTheWay: readonly string[];
  /** The buyer's active order, or undefined. */
  readonly activeOrderId: string | undefined;
}

/** The register's side of a sale: its numbers, or why it cannot be used. */
export type SaleFacts =
  | ({ readonly kind: 'PRESENT' } & SaleCounters & UnitsAt & WindowAt)
  | { readonly kind: 'UNUSABLE'; readonly cause: string };

/** The database's side of a sale. */
export interface RecordFacts extends UnitsAt, WindowAt {
  readonly stock: number;
  readonly activeOrders: number;
}

/** One voucher as both stores show it. */
export interface VoucherFacts {
  readonly voucherId: string;
  readonly partition: number;
  readonly sale: SaleFacts;
  readonly record: RecordFacts;
}

type Place = Pick<VoucherFacts, 'voucherId' | 'partition'>;

/** The rules for one buyer: at most one thing is wrong with him at a time. Pure. */
export function judgeBuyer(place: Place, buyer: BuyerFacts): Finding | undefined {
  const { voucherId, partition } = place;
  const at = { voucherId, partition, userId: buyer.userId };
  const { mark, activeOrderId, onTheWay } = buyer;
  if (mark === undefined) {
    if (activeOrderId !== undefined) return { kind: 'MARK_LOST', source: 'ORDER', orderId: activeOrderId, ...at };
    const oldest = onTheWay[0];
    return oldest === undefined ? undefined : { kind: 'MARK_LOST', source: 'ENTRY', orderId: oldest, ...at };
  }
  if (activeOrderId !== undefined && activeOrderId !== mark.orderId) {
    // The entry of the marked id decides by itself: it is rejected, and its release puts the active order into the mark.
    if (onTheWay.includes(mark.orderId)) return undefined;
    return { kind: 'MARK_OF_OTHER_ORDER', orderId: mark.orderId, activeOrderId, ...at };
  }
  switch (mark.standing) {
    case 'ACTIVE':
      return undefined;
    case 'SETTLED':
    case 'FOREIGN':
      return { kind: 'RELEASE_LOST', orderId: mark.orderId, standing: mark.standing, ...at };
    case 'UNKNOWN':
      return onTheWay.includes(mark.orderId) ? undefined : { kind: 'ENTRY_LOST', orderId: mark.orderId, ...at };
  }
}

/** The rules for the numbers of one sale, in the order of the table. Pure. */
export function judgeSale({ voucherId, partition, sale, record }: VoucherFacts): Finding[] {
  const at = { voucherId, partition };
  const findings: Finding[] = [];
  if (sale.kind === 'PRESENT') {
    const { stock, marks, units, unitsVersion } = sale;
    const missing = units - marks - stock;
    if (missing !== 0) findings.push({ kind: 'COUNTER_DRIFT', counters: { stock, marks, units }, missing, ...at });
    // Equal units under a higher version of the register are the leftover of a change that was undone: nothing differs for a buyer.
    if (units !== record.units || unitsVersion < record.unitsVersion) {
      findings.push({
        kind: 'UNITS_DIFFER',
        register: { units, unitsVersion },
        record: { units: record.units, unitsVersion: record.unitsVersion },
        ...at,
      });
    }
  }
  const { units, stock, activeOrders } = record;
  if (units !== stock + activeOrders) findings.push({ kind: 'RECORD_ALTERED', units, stock, activeOrders, ...at });
  if (sale.kind === 'UNUSABLE') {
    findings.push({ kind: 'SALE_MISSING', cause: sale.cause, ...at });
  } else if (sale.beginMs !== record.beginMs || sale.endMs !== record.endMs) {
    const { beginMs, endMs } = record;
    const register = { beginMs: sale.beginMs, endMs: sale.endMs };
    findings.push({ kind: 'WINDOW_DIFFERS', register, record: { beginMs, endMs }, ...at });
  }
  if (activeOrders > units) findings.push({ kind: 'OVERSOLD', units, activeOrders, ...at });
  return findings;
}

/** All findings of one snapshot in the order in which they are worked. Pure. */
export function judge(voucher: VoucherFacts, buyers: readonly BuyerFacts[]): Finding[] {
  const findings = judgeSale(voucher);
  for (const buyer of buyers) {
    const finding = judgeBuyer(voucher, buyer);
    if (finding !== undefined) findings.push(finding);
  }
  return inWorkingOrder(findings);
}

/** The same findings, sorted by the order of the table; within a kind they keep their order. */
export function inWorkingOrder(findings: readonly Finding[]): Finding[] {
  return [...findings].sort((a, b) => FINDING_KINDS.indexOf(a.kind) - FINDING_KINDS.indexOf(b.kind));
}
