import { Injectable } from '@nestjs/common';
import { decodeEntry } from '#order-stream';
import { OrderLog } from '#sale-register';
import { OrdersOnTheWay } from './orders-on-the-way.js';

const PAGE_SIZE = 1_000;

/** Reads one partition's stream and dead letters as a whole, page by page. */
@Injectable()
export class StreamReader {
  constructor(private readonly log: OrderLog) {}

  /**
   * Every order that stands in the stream or among the dead letters: the stream, then the dead letters, then what was appended to the stream
   * meanwhile, for a letter that is tried again moves there. Malformed and deleted entries are left out: they are no orders.
   * @throws RedisUnavailableError, and the signal's reason
   */
  async ordersOnTheWay(partition: number, signal: AbortSignal): Promise<OrdersOnTheWay> {
    const orders = new OrdersOnTheWay();
    const last = await this.readStream(partition, undefined, orders, signal);
    await this.readDeadLetters(partition, orders, signal);
    await this.readStream(partition, last, orders, signal);
    return orders;
  }

  /** Notes the orders behind `after`; answers the last entry's id. Ends at what was there at the start, give or take a page. */
  private async readStream(
    partition: number,
    after: string | undefined,
    orders: OrdersOnTheWay,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    let last = after;
    for (;;) {
      signal.throwIfAborted();
      const entries = await this.log.readEntriesAfter(partition, last, PAGE_SIZE);
      for (const entry of entries) {
        const decoded = decodeEntry(entry);
        if (decoded.kind === 'ORDER') orders.add(decoded.order);
      }
      last = entries.at(-1)?.entryId ?? last;
      if (entries.length < PAGE_SIZE) return last;
    }
  }

  private async readDeadLetters(partition: number, orders: OrdersOnTheWay, signal: AbortSignal): Promise<void> {
    let last: string | undefined;
    for (;;) {
      signal.throwIfAborted();
      const letters = await this.log.listDeadLetters(partition, PAGE_SIZE, last);
      for (const { order } of letters) if (order !== undefined) orders.add(order);
      last = letters.at(-1)?.id ?? last;
      if (letters.length < PAGE_SIZE) return;
    }
  }
}
