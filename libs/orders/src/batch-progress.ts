import type { NewOrder, OrderResult } from './order.types.js';

/** Orders that are tried in one transaction. `positions` say where each stands in the batch. */
export interface Group {
  /**
   * WHOLE: as it came, or halved. VOUCHER: all orders of one voucher. ALONE: one order of a voucher that is short of units: whether there is a
   * unit for it is decided for good.
   */
  readonly kind: 'WHOLE' | 'VOUCHER' | 'ALONE';
  readonly positions: readonly number[];
  readonly orders: readonly NewOrder[];
}

const DEFERRED: OrderResult = { kind: 'DEFERRED' };

/** What of a batch is settled, and which groups are still to be tried. */
export class BatchProgress {
  private readonly settled: (OrderResult | undefined)[];
  /** A stack: what was pushed last is tried first. */
  private readonly groups: Group[];
  /** Positions of orders that are to be judged alone, after all groups, oldest first. */
  private readonly alone: number[] = [];
  private troubleEndsMs: number | undefined;

  constructor(
    private readonly orders: readonly NewOrder[],
    private readonly troubleMs: number,
  ) {
    this.settled = new Array<OrderResult | undefined>(orders.length);
    this.groups = [{ kind: 'WHOLE', positions: orders.map((_, position) => position), orders }];
  }

  /** The next group to try. When the time for trouble is over, the rest is deferred. */
  next(): Group | undefined {
    if (this.troubleEndsMs !== undefined && performance.now() > this.troubleEndsMs) {
      for (const group of this.groups.splice(0)) this.defer(group);
      for (const position of this.alone.splice(0)) this.settled[position] = DEFERRED;
    }
    const oldest = this.groups.length === 0 ? this.alone.shift() : undefined;
    if (oldest !== undefined) this.push('ALONE', [oldest]);
    return this.groups.pop();
  }

  /** True at the first trouble of the batch; from then on the time runs. */
  firstTrouble(): boolean {
    if (this.troubleEndsMs !== undefined) return false;
    this.troubleEndsMs = performance.now() + this.troubleMs;
    return true;
  }

  settle(group: Group, results: readonly OrderResult[]): void {
    if (group.positions.length === this.orders.length) {
      results.forEach((result, index) => (this.settled[group.positions[index] as number] = result));
      return;
    }
    group.positions.forEach((position, index) => (this.settled[position] = results[index]));
  }

  defer(group: Group): void {
    for (const position of group.positions) this.settled[position] = DEFERRED;
  }

  halve(group: Group): void {
    const middle = group.positions.length >>> 1;
    this.push(group.kind, group.positions.slice(middle));
    this.push(group.kind, group.positions.slice(0, middle));
  }

  /** Orders of these vouchers go one by one, oldest first, after all others of the batch. */
  oneByOne(group: Group, vouchers: ReadonlySet<string>): void {
    const others: number[] = [];
    for (const position of group.positions) {
      if (vouchers.has(this.order(position).voucherId)) this.alone.push(position);
      else others.push(position);
    }
    // Ties keep the order of the batch.
    this.alone.sort((a, b) => byAge(this.order(a), this.order(b)) || a - b);
    this.push(group.kind, others);
  }

  /** Each voucher of the group by itself, in no fixed order: where the time does not suffice for all, it is not always the same that wait. */
  byVoucher(group: Group): void {
    const byVoucher = new Map<string, number[]>();
    for (const position of group.positions) {
      const { voucherId } = this.order(position);
      const positions = byVoucher.get(voucherId);
      if (positions === undefined) byVoucher.set(voucherId, [position]);
      else positions.push(position);
    }
    const parts = [...byVoucher.values()];
    const turn = Math.floor(Math.random() * parts.length);
    for (const positions of [...parts.slice(turn), ...parts.slice(0, turn)]) this.push('VOUCHER', positions);
  }

  /** Orders of these vouchers are deferred; the rest is tried again, by voucher if it meets a lock once more. */
  withoutVouchers(group: Group, vouchers: ReadonlySet<string>): void {
    const rest: number[] = [];
    for (const position of group.positions) {
      if (vouchers.has(this.order(position).voucherId)) this.settled[position] = DEFERRED;
      else rest.push(position);
    }
    this.push('WHOLE', rest);
  }

  /** The results in the order of the batch. */
  results(): readonly OrderResult[] {
    return this.settled.map((result) => {
      if (result === undefined) throw new Error('an order of the batch was left without a result');
      return result;
    });
  }

  private push(kind: Group['kind'], positions: readonly number[]): void {
    if (positions.length === 0) return;
    this.groups.push({ kind, positions, orders: positions.map((position) => this.order(position)) });
  }

  private order(position: number): NewOrder {
    const order = this.orders[position];
    if (order === undefined) throw new Error('no such position in the batch');
    return order;
  }
}

/** Older orders first; ids decide within one millisecond. */
function byAge(a: NewOrder, b: NewOrder): number {
  if (a.acceptedAtMs !== b.acceptedAtMs) return a.acceptedAtMs - b.acceptedAtMs;
  const [left, right] = [BigInt(a.orderId), BigInt(b.orderId)];
  return left < right ? -1 : left > right ? 1 : 0;
}
