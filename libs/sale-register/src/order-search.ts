import { Injectable } from '@nestjs/common';
import { decodeEntry, entryTimeMs, nextEntryId, type OrderEntry } from '#order-stream';
import { OrderLog } from './order-log.js';

const PAGE_ENTRIES = 1_000;

/** What the search came to. UNDECIDED: a limit was reached before the end of the span. */
export type OrderSearchOutcome =
  | { readonly kind: 'FOUND'; readonly order: OrderEntry; readonly entryId: string }
  | { readonly kind: 'ABSENT' }
  | { readonly kind: 'UNDECIDED' };

/** Where an order may stand in the stream, and how far the search may go. */
export interface SearchSpan {
  /** Unix milliseconds by Redis' clock, both included. */
  readonly fromMs: number;
  readonly untilMs: number;
  readonly maxEntries: number;
  /** How long the search may take. */
  readonly timeLeftMs: number;
}

/** Finds an order that waits in the stream by its id alone: for operators, who do not know the buyer and so cannot ask for a mark. */
@Injectable()
export class OrderSearch {
  constructor(private readonly log: OrderLog) {}

  /** Walks the entries of the span, page by page. Throws RedisUnavailableError. */
  async find(partition: number, orderId: string, span: SearchSpan): Promise<OrderSearchOutcome> {
    const deadlineMs = performance.now() + span.timeLeftMs;
    let from = `${Math.max(0, Math.floor(span.fromMs))}-0`;
    for (let read = 0; read < span.maxEntries && performance.now() < deadlineMs; read += PAGE_ENTRIES) {
      const entries = await this.log.readEntries(partition, from, PAGE_ENTRIES);
      for (const entry of entries) {
        const decoded = decodeEntry(entry);
        if (decoded.kind === 'ORDER' && decoded.order.orderId === orderId) {
          return { kind: 'FOUND', order: decoded.order, entryId: decoded.entryId };
        }
      }
      const last = entries.at(-1);
      if (last === undefined || entries.length < PAGE_ENTRIES || entryTimeMs(last.entryId) > span.untilMs) {
        return { kind: 'ABSENT' };
      }
      from = nextEntryId(last.entryId);
    }
    return { kind: 'UNDECIDED' };
  }
}
