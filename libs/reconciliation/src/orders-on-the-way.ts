import type { OrderEntry } from '#order-stream';

/**
 * Which orders of which buyer stand in one partition's stream or among its dead letters, by voucher. Held in memory: admission refuses at
 * MAX_BACKLOG undelivered and pending entries, so the stream, and with it this index, is bounded by that setting plus the dead letters.
 */
export class OrdersOnTheWay {
  private readonly vouchers = new Map<string, Map<string, string[]>>();
  private count = 0;

  /** Distinct orders in the index. */
  get size(): number {
    return this.count;
  }

  /** Notes an order; the same order noted again changes nothing. A buyer's orders keep the sequence in which they were noted. */
  add({ voucherId, userId, orderId }: OrderEntry): void {
    let buyers = this.vouchers.get(voucherId);
    if (buyers === undefined) this.vouchers.set(voucherId, (buyers = new Map<string, string[]>()));
    const orders = buyers.get(userId);
    if (orders === undefined) buyers.set(userId, [orderId]);
    else if (orders.includes(orderId)) return;
    else orders.push(orderId);
    this.count += 1;
  }

  /** Every voucher with an order on its way. */
  voucherIds(): string[] {
    return [...this.vouchers.keys()];
  }

  /** The buyers of a voucher with their orders, oldest first. */
  buyersOf(voucherId: string): Iterable<[string, readonly string[]]> {
    return this.vouchers.get(voucherId)?.entries() ?? [];
  }

  /** One buyer's orders of one voucher, oldest first. */
  ordersOf(voucherId: string, userId: string): readonly string[] {
    return this.vouchers.get(voucherId)?.get(userId) ?? [];
  }
}
