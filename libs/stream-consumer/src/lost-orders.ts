import { Logger } from '@nestjs/common';
import { decodeEntry } from '#order-stream';
import type { OrderReader, OrderRepository } from '#orders';
import type { OrderLog, RebuildRegister } from '#sale-register';
import type { Batch, HeldOrder } from './batch.js';
import type { ConsumeCounts } from './consume-counts.js';
import { pauseMs } from './retry-policy.js';
import type { SettlementQueue } from './settlement-queue.js';

interface LostOrder {
  readonly held: HeldOrder;
  /** How often the register was closed when it was asked. */
  closed: number;
}

/**
 * How often a closed register is asked before an order is given up: with growing pauses about half an hour, far longer than the rebuild of ten
 * million marks.
 */
const MOST_CLOSED_ANSWERS = 1_200;
/** Orders looked after in one turn. */
const AT_ONCE = 200;

/**
 * Orders that were in hand, or left pending by this process, while Redis lost them: read under an older epoch number, and no longer in the stream. Nobody else knows them, so each must
 * come to an end here: what the database knows is settled; the others go back through the register under the same id (mark and unit taken if free, entry
 * appended), or, where that is impossible, are rejected (LOST_RIGHT). While the register is closed they wait, up to a limit.
 */
export class LostOrders {
  private readonly logger = new Logger(LostOrders.name);
  private readonly waiting = new Map<string, LostOrder>();
  /** Why the waiting orders wait, or undefined. */
  trouble: unknown;

  private failures = 0;
  private dueMs = 0;

  constructor(
    private readonly partition: number,
    private readonly log: OrderLog,
    private readonly rebuild: RebuildRegister,
    private readonly orders: OrderRepository,
    private readonly reader: OrderReader,
    private readonly settlements: SettlementQueue,
    private readonly settled: (entryId: string) => void,
  ) {}

  get size(): number {
    return this.waiting.size;
  }

  /** Looks after an order whose entry is known to be gone. */
  add(held: HeldOrder): void {
    this.waiting.set(held.entryId, { held, closed: 0 });
  }

  /**
   * Looks for the batch's entries under the epoch number that holds now. Those that still stand in the stream stay in the batch, as read under that
   * number; the others are taken off it and looked after here. Throws where Redis cannot be asked; the batch is then as it was.
   */
  async sort(batch: Batch, epochNumber: number): Promise<void> {
    const entries = await this.log.findEntries(
      this.partition,
      batch.orders.map(({ entryId }) => entryId),
    );
    const standing = new Map<string, string>();
    for (const entry of entries) {
      const decoded = decodeEntry(entry);
      // Another order may have got the entry's id in the new history.
      if (decoded.kind === 'ORDER') standing.set(decoded.entryId, decoded.order.orderId);
    }
    const stands = (held: HeldOrder): boolean => standing.get(held.entryId) === held.order.orderId;
    const gone = batch.orders.filter((held) => !stands(held));
    gone.forEach((held) => this.add(held));
    batch.orders = batch.orders.filter(stands);
    batch.epochNumber = epochNumber;
    if (gone.length > 0) this.logger.warn(`partition ${this.partition}: Redis lost ${gone.length} orders in hand`);
  }

  /** Looks after the waiting orders if it is time (`force`: at any time). Never throws: in passing trouble the orders wait on. */
  async turn(nowMs: number, counts: ConsumeCounts, force = false): Promise<void> {
    if (this.waiting.size === 0 || (!force && nowMs < this.dueMs)) return;
    const some = [...this.waiting.values()].slice(0, AT_ONCE);
    try {
      const closed = await this.lookAfter(some, counts);
      this.trouble = closed
        ? new Error(`the register is closed to ${this.waiting.size} orders that Redis lost`)
        : undefined;
    } catch (error) {
      this.trouble = error;
      // Those behind them come first next time.
      for (const lost of some) if (this.waiting.delete(lost.held.entryId)) this.waiting.set(lost.held.entryId, lost);
    }
    this.failures = this.trouble === undefined ? 0 : this.failures + 1;
    this.dueMs = nowMs + pauseMs(this.failures, Math.random());
  }

  /** The process ends, and these orders with it: each that cannot be readmitted now is rejected, if the database can be reached. */
  async giveUp(counts: ConsumeCounts): Promise<void> {
    for (const lost of this.waiting.values()) lost.closed = MOST_CLOSED_ANSWERS;
    for (let left = this.waiting.size; left > 0; left -= AT_ONCE) await this.turn(0, counts, true);
  }

  /** True where the register was closed for one of them. */
  private async lookAfter(some: readonly LostOrder[], counts: ConsumeCounts): Promise<boolean> {
    const known = await this.reader.findByIds(some.map(({ held }) => held.order.orderId));
    let closed = false;
    for (const lost of some) {
      const stored = known.get(lost.held.order.orderId);
      if (stored === undefined) closed = (await this.readmit(lost, counts)) || closed;
      else if (stored.status === 'REJECTED') await this.reject(lost, 'it had been rejected before');
      else this.end(lost);
    }
    return closed;
  }

  private async readmit(lost: LostOrder, counts: ConsumeCounts): Promise<boolean> {
    const outcome = await this.rebuild.readmit(this.partition, lost.held.order);
    switch (outcome.kind) {
      case 'READMITTED':
        counts.readmitted += 1;
        this.end(lost);
        return false;
      case 'CLOSED':
        lost.closed += 1;
        if (lost.closed < MOST_CLOSED_ANSWERS) return true;
        await this.reject(lost, 'the register stayed closed');
        return false;
      case 'HELD':
        await this.reject(lost, `the buyer holds order ${outcome.orderId}`);
        return false;
      case 'NO_UNITS':
        await this.reject(lost, 'no unit is left');
        return false;
      case 'NOT_PUBLISHED':
        await this.reject(lost, 'the voucher is not on sale');
        return false;
    }
  }

  /** Rejects it, unless the database knows better: its answer is what holds now. */
  private async reject(lost: LostOrder, why: string): Promise<void> {
    const { entryId, order } = lost.held;
    const cause = `Redis lost the accepted order: ${why}`;
    const result = await this.orders.rejectOrder(this.partition, order, 'LOST_RIGHT', cause);
    if (result.kind === 'DEFERRED') return;
    this.waiting.delete(entryId);
    if (result.kind === 'REJECTED') this.settlements.release(entryId, order, result, { pending: false });
    else this.settled(entryId);
  }

  /** Nothing is left to do. Not acknowledged: its entry is gone, and the id may be that of another one by now. */
  private end(lost: LostOrder): void {
    this.waiting.delete(lost.held.entryId);
    this.settled(lost.held.entryId);
  }
}
