/** What an order id is to the buyer whose mark or entry carries it. */
export type OrderStanding =
  /** A stored order of this buyer and voucher that holds its unit. */
  | 'ACTIVE'
  /** Durably rejected, cancelled or refunded: it holds no unit any more. */
  | 'SETTLED'
  /** The id is the order of another buyer or another voucher. */
  | 'FOREIGN'
  /** No record knows the id. */
  | 'UNKNOWN';

interface Located {
  readonly voucherId: string;
  readonly partition: number;
}

interface OfBuyer extends Located {
  readonly userId: string;
  readonly orderId: string;
}

/** The numbers of one sale in the register, read in one call. `stock` may be negative after a repair. */
export interface SaleCounters {
  readonly stock: number;
  readonly marks: number;
  readonly units: number;
}

/**
 * One difference between marks, stream, dead letters, stock and database, named by voucher and, where there is one, by buyer and order. The kinds
 * stand in the order in which they are worked.
 */
export type Finding =
  /** The partition is not open: nothing in it can be judged before it is rebuilt. */
  | { readonly kind: 'PARTITION_CLOSED'; readonly partition: number; readonly state: string }
  /** The key of the stream, or of the dead letters, is of another type: nothing is admitted or set aside. */
  | { readonly kind: 'LOG_UNUSABLE'; readonly partition: number; readonly log: 'stream' | 'dead letters' }
  /** A mark without entry, dead letter, order or rejection: the entry is lost, or the database lost a commit. */
  | ({ readonly kind: 'ENTRY_LOST' } & OfBuyer)
  /** An active order, or an entry on its way, whose buyer is not marked. */
  | ({ readonly kind: 'MARK_LOST'; readonly source: 'ORDER' | 'ENTRY' } & OfBuyer)
  /** The mark names `orderId`; the buyer's active order is `activeOrderId`. */
  | ({ readonly kind: 'MARK_OF_OTHER_ORDER'; readonly activeOrderId: string } & OfBuyer)
  /** The mark names an order that holds no unit (SETTLED), or that is not this buyer's (FOREIGN). */
  | ({ readonly kind: 'RELEASE_LOST'; readonly standing: 'SETTLED' | 'FOREIGN' } & OfBuyer)
  /** stock + marks differ from the units offered; `missing` is what the stock lacks (negative: what it has too much). */
  | ({ readonly kind: 'COUNTER_DRIFT'; readonly counters: SaleCounters; readonly missing: number } & Located)
  /** The two stores name different units: a restock was cut in half. */
  | ({
      readonly kind: 'UNITS_DIFFER';
      readonly register: UnitsAt;
      readonly record: UnitsAt;
    } & Located)
  /** In the database units differ from stock + active orders: an operator's hand. Named, never guessed. */
  | ({
      readonly kind: 'RECORD_ALTERED';
      readonly units: number;
      readonly stock: number;
      readonly activeOrders: number;
    } & Located)
  /** In the database, but the register has no sale, or one that lacks a key or is of the wrong form. */
  | ({ readonly kind: 'SALE_MISSING'; readonly cause: string } & Located)
  /** The register's sale has another window than the database's. */
  | ({ readonly kind: 'WINDOW_DIFFERS'; readonly register: WindowAt; readonly record: WindowAt } & Located)
  /** More active orders than units. Must not be possible. */
  | ({ readonly kind: 'OVERSOLD'; readonly units: number; readonly activeOrders: number } & Located);

export type FindingKind = Finding['kind'];

export interface UnitsAt {
  readonly units: number;
  readonly unitsVersion: number;
}

export interface WindowAt {
  readonly beginMs: number;
  readonly endMs: number;
}

/** Every kind, in the order in which they are worked. */
export const FINDING_KINDS = [
  'PARTITION_CLOSED',
  'LOG_UNUSABLE',
  'ENTRY_LOST',
  'MARK_LOST',
  'MARK_OF_OTHER_ORDER',
  'RELEASE_LOST',
  'COUNTER_DRIFT',
  'UNITS_DIFFER',
  'RECORD_ALTERED',
  'SALE_MISSING',
  'WINDOW_DIFFERS',
  'OVERSOLD',
] as const satisfies readonly FindingKind[];

/** A key under which two looks at the same difference compare equal, also while stock and marks move under traffic. */
export function findingKey(finding: Finding): string {
  switch (finding.kind) {
    case 'PARTITION_CLOSED':
      return `${finding.kind}/${finding.partition}`;
    case 'LOG_UNUSABLE':
      return `${finding.kind}/${finding.partition}/${finding.log}`;
    case 'ENTRY_LOST':
    case 'MARK_LOST':
    case 'MARK_OF_OTHER_ORDER':
    case 'RELEASE_LOST':
      return `${finding.kind}/${finding.voucherId}/${finding.userId}/${finding.orderId}`;
    case 'COUNTER_DRIFT':
      return `${finding.kind}/${finding.voucherId}/${finding.missing}`;
    case 'UNITS_DIFFER':
      return `${finding.kind}/${finding.voucherId}/${finding.register.unitsVersion}/${finding.record.unitsVersion}`;
    case 'RECORD_ALTERED':
    case 'SALE_MISSING':
    case 'WINDOW_DIFFERS':
    case 'OVERSOLD':
      return `${finding.kind}/${finding.voucherId}`;
  }
}

/**
 * True where a single script is not enough, because something that no reading shows may contradict it: a batch in a consumer's hand may still hold
 * the units that the stock seems to lack, and an entry that was read may be gone with its data, and its unit given to somebody else, although the
 * epoch is the same again. A rebuild raises the fence first and works under a token of its own. docs/protocol.md has both traces.
 */
export function needsFence(finding: Finding): finding is Extract<Finding, { kind: 'COUNTER_DRIFT' | 'MARK_LOST' }> {
  if (finding.kind === 'COUNTER_DRIFT') return finding.missing > 0;
  return finding.kind === 'MARK_LOST' && finding.source === 'ENTRY';
}

/** What the difference means and what a repair does about it, in words for an operator. */
export function explainFinding(finding: Finding): { readonly meaning: string; readonly repair: string } {
  switch (finding.kind) {
    case 'PARTITION_CLOSED':
      return {
        meaning: `partition ${finding.partition} is closed (${finding.state}): its purchases are refused`,
        repair: 'rebuilds the partition from the database and the stream, then opens it',
      };
    case 'LOG_UNUSABLE':
      return {
        meaning: `the key of the ${finding.log} of partition ${finding.partition} is of another type`,
        repair: 'drops that key: the marks bring every order back that was lost with the log',
      };
    case 'ENTRY_LOST':
      return {
        meaning: 'accepted, but neither on its way nor stored: the stream entry or a database commit was lost',
        repair: 'appends the entry again under the same order id',
      };
    case 'MARK_LOST':
      return {
        meaning: `${finding.source === 'ORDER' ? 'stored' : 'on its way'}, but the buyer is not marked in Redis`,
        repair: 'marks the buyer and takes the unit',
      };
    case 'MARK_OF_OTHER_ORDER':
      return {
        meaning: `the mark names this order, but the buyer's active order is ${finding.activeOrderId}`,
        repair: 'puts the active order into the mark',
      };
    case 'RELEASE_LOST':
      return {
        meaning:
          finding.standing === 'SETTLED'
            ? 'the order holds no unit any more, but its mark still does'
            : "the mark names another buyer's or another voucher's order",
        repair: 'gives the unit and the mark back',
      };
    case 'COUNTER_DRIFT':
      return {
        meaning: `stock ${finding.counters.stock} + marks ${finding.counters.marks} differ from units ${finding.counters.units}`,
        repair:
          finding.missing < 0
            ? `lowers the stock by ${-finding.missing}`
            : `rebuilds the voucher, once a second look finds the same ${finding.missing} missing and nothing else`,
      };
    case 'UNITS_DIFFER':
      return {
        meaning: `units are ${finding.register.units} (version ${finding.register.unitsVersion}) in Redis and ${finding.record.units} (version ${finding.record.unitsVersion}) in the database`,
        repair: 'lets the higher version win',
      };
    case 'RECORD_ALTERED':
      return {
        meaning: `in the database units ${finding.units} differ from stock ${finding.stock} + active orders ${finding.activeOrders}: changed by hand`,
        repair: 'nothing: only the operator knows what was meant',
      };
    case 'SALE_MISSING':
      return { meaning: `not soundly on sale in Redis: ${finding.cause}`, repair: 'rebuilds the voucher' };
    case 'WINDOW_DIFFERS':
      return {
        meaning: 'the sale window in Redis differs from the one in the database',
        repair: 'rebuilds the voucher',
      };
    case 'OVERSOLD':
      return {
        meaning: `${finding.activeOrders} active orders for ${finding.units} units`,
        repair: 'nothing: an alarm for the operator',
      };
  }
}
