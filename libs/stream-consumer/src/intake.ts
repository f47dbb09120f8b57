import { Logger } from '@nestjs/common';
import { type DecodedEntry, decodeEntry, entryTimeMs, type RawEntry } from '#order-stream';
import type { Batch, HeldOrder } from './batch.js';
import type { ConsumeCounts } from './consume-counts.js';
import type { LostOrders } from './lost-orders.js';
import * as metrics from './metrics.js';
import type { ReadResult } from './partition-reader.js';
import { RepeatedLog } from './repeated-log.js';
import type { SettlementQueue } from './settlement-queue.js';

interface LeftOrder {
  readonly held: HeldOrder;
  readonly epochNumber: number;
}

/** What a read brought, with each of its entries decoded. */
export interface DecodedRead extends ReadResult {
  readonly decoded: readonly DecodedEntry[];
}

/** Decodes what was read. Depends on nothing else, so that it can be done while the batch before it is stored. */
export function decodeRead(read: ReadResult): DecodedRead {
  return { ...read, decoded: read.entries.map(decodeEntry) };
}

/** Orders that were left pending and are remembered at most; of a forgotten one only its entry is known. */
const LEFT_REMEMBERED = 10_000;

/**
 * Takes into hand what was read. Knows what is in hand, so that a second delivery is not handled beside the first, and remembers orders that were left
 * pending: where such an entry is deleted from the stream meanwhile, the order is still known.
 */
export class Intake {
  /** Entries in hand, by id, with the order they hold. */
  private readonly held = new Map<string, string>();
  private readonly leftOrders = new Map<string, LeftOrder>();
  private readonly log: RepeatedLog;

  constructor(
    partition: number,
    private readonly settlements: SettlementQueue,
    private readonly lost: LostOrders,
  ) {
    const logger = new Logger('StreamConsumer');
    this.log = new RepeatedLog((line) => logger.warn(`partition ${partition}: ${line}`));
  }

  /** Entries in hand. */
  get size(): number {
    return this.held.size;
  }

  /** Whether orders were left pending and are not known to be through. */
  get hasLeft(): boolean {
    return this.leftOrders.size > 0;
  }

  /** The entry is through, and no longer in hand. */
  settled(entryId: string): void {
    this.held.delete(entryId);
  }

  /** The order stays pending and is no longer in hand. */
  left(held: HeldOrder, epochNumber: number): void {
    this.held.delete(held.entryId);
    if (this.leftOrders.size >= LEFT_REMEMBERED) this.leftOrders.delete(this.leftOrders.keys().next().value ?? '');
    this.leftOrders.set(held.entryId, { held, epochNumber });
  }

  /**
   * Takes the left orders into hand that were read under another epoch number: Redis may have lost them meanwhile, and with them the pending entry
   * that would bring them back.
   */
  recall(epochNumber: number): HeldOrder[] {
    const recalled: HeldOrder[] = [];
    for (const [entryId, left] of this.leftOrders) {
      if (left.epochNumber === epochNumber) continue;
      this.leftOrders.delete(entryId);
      if (this.held.has(entryId)) continue;
      this.held.set(entryId, left.held.order.orderId);
      recalled.push(left.held);
    }
    return recalled;
  }

  /** The orders of the read as a batch; whatever else was read is on its way to be settled. */
  take(read: DecodedRead, counts: ConsumeCounts): Batch {
    const batch: Batch = { epochNumber: read.epochNumber, orders: [] };
    read.entries.forEach((entry, at) => this.takeEntry(entry, read.decoded[at] as DecodedEntry, read, batch, counts));
    for (const entryId of read.vanished) this.takeVanished(entryId, batch, counts);
    return batch;
  }

  private takeEntry(
    entry: RawEntry,
    decoded: DecodedEntry,
    read: ReadResult,
    batch: Batch,
    counts: ConsumeCounts,
  ): void {
    const { entryId } = entry;
    const deliveries = read.deliveries.get(entryId) ?? 1;
    if (decoded.kind === 'VANISHED') return this.takeVanished(entryId, batch, counts);
    const holds = decoded.kind === 'ORDER' ? decoded.order.orderId : '';
    if (this.held.get(entryId) === holds) return;
    this.hold(entryId, holds, counts);
    if (decoded.kind === 'ORDER') {
      batch.orders.push({ entryId, order: decoded.order, fields: entry.fields ?? {}, deliveries });
      return;
    }
    this.settlements.deadLetter('MALFORMED', {
      entryId,
      cause: `MALFORMED: ${decoded.cause}`,
      fields: decoded.fields,
      deliveries,
      firstSeenMs: entryTimeMs(entryId),
    });
  }

  private takeVanished(entryId: string, batch: Batch, counts: ConsumeCounts): void {
    // One in hand ends as the order in hand does.
    if (this.held.has(entryId)) return;
    const left = this.leftOrders.get(entryId);
    if (left !== undefined) {
      this.hold(entryId, left.held.order.orderId, counts);
      if (left.epochNumber === batch.epochNumber) batch.orders.push(left.held);
      else this.lost.add(left.held);
      return;
    }
    this.hold(entryId, '', counts);
    counts.vanished += 1;
    metrics.vanishedEntries.inc();
    this.log.note(`pending entry ${entryId} vanished from the stream; acknowledged`, performance.now());
    this.settlements.acknowledge(entryId);
  }

  private hold(entryId: string, orderId: string, counts: ConsumeCounts): void {
    this.held.set(entryId, orderId);
    this.leftOrders.delete(entryId);
    counts.read += 1;
  }
}
