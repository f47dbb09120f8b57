import { type OrderEntry } from '#order-stream';
import type { NewLedgerEntry, OrderResult, StockLedger } from '#orders';
import type { DeadLetterRecord, OrderLog, SaleRegister } from '#sale-register';
import type { ConsumeCounts } from './consume-counts.js';
import * as metrics from './metrics.js';
import { pauseMs } from './retry-policy.js';

type Rejected = Extract<OrderResult, { kind: 'REJECTED' }>;

/** An order with a durable rejection, whose right is still to be taken back in the register. */
interface PendingRelease {
  readonly entryId: string;
  readonly order: OrderEntry;
  readonly rejected: Rejected;
  /** False where the entry is gone and there is nothing to acknowledge. */
  readonly pending: boolean;
}

/** The kind of no-order, a word that may label a metric; it begins the letter's cause. */
export type DeadLetterKind = 'MALFORMED' | 'FOREIGN_ID' | 'UNKNOWN_VOUCHER';

interface PendingLetter {
  readonly kind: DeadLetterKind;
  readonly record: DeadLetterRecord;
}

/** Scripts sent at once; the connection answers them in turn. */
const IN_FLIGHT = 100;
/** Lines of the stock ledger that wait for a database at most. */
const LEDGER_LINES_KEPT = 10_000;
/** Entries acknowledged by one script. */
const ACKNOWLEDGED_AT_ONCE = 1_000;

/**
 * What is decided durably and must still be told to Redis: releases, dead letters, acknowledgements. Each step may be refused or lost, and is then
 * told again after a growing pause, without being decided again; the three kinds of steps do not wait for one another. Every step is idempotent in
 * Redis, so a repeated one, or one that another consumer has taken, changes nothing. Entries that wait here are lost with the process: they are still
 * pending and come to the same end when they are read again.
 */
export class SettlementQueue {
  private readonly releases = new Map<string, PendingRelease>();
  private readonly letters = new Map<string, PendingLetter>();
  private readonly finished = new Set<string>();
  /** Letters were written: their entries are finished, and to be removed with the next acknowledgement. */
  private lettersWritten = false;
  private readonly lines: NewLedgerEntry[] = [];
  private readonly steps = { release: new Step(), letter: new Step(), acknowledge: new Step(), ledger: new Step() };

  /** `settled` hears of each entry that is through. */
  constructor(
    private readonly partition: number,
    private readonly log: OrderLog,
    private readonly register: SaleRegister,
    private readonly ledger: StockLedger,
    private readonly settled: (entryId: string) => void,
  ) {}

  get size(): number {
    return this.releases.size + this.letters.size + this.finished.size;
  }

  /** The entry's outcome is durable: acknowledge it. */
  acknowledge(entryId: string): void {
    this.finished.add(entryId);
  }

  /** The order's rejection is durable: release it (or pass the mark on to the buyer's other order), then acknowledge where it is pending. */
  release(entryId: string, order: OrderEntry, rejected: Rejected, { pending }: { pending: boolean }): void {
    this.releases.set(entryId, { entryId, order, rejected, pending });
  }

  /** The entry is no order: dead letter and acknowledgement in one script. */
  deadLetter(kind: DeadLetterKind, record: DeadLetterRecord): void {
    this.letters.set(record.entryId, { kind, record });
  }

  /**
   * Takes every step that is due at `nowMs` (a monotonic clock; `force`: every step). Returns the first error, if a step failed; never throws.
   */
  async flush(nowMs: number, counts: ConsumeCounts, force = false): Promise<unknown> {
    const { release, letter, acknowledge, ledger } = this.steps;
    if (this.releases.size > 0 && (force || release.isDue(nowMs))) await release.run(nowMs, this.releaseAll(counts));
    if (this.letters.size > 0 && (force || letter.isDue(nowMs))) await letter.run(nowMs, this.writeLetters(counts));
    if ((this.finished.size > 0 || this.lettersWritten) && (force || acknowledge.isDue(nowMs)))
      await acknowledge.run(nowMs, this.acknowledgeAll(counts));
    if (this.lines.length > 0 && (force || ledger.isDue(nowMs))) await ledger.run(nowMs, this.writeLedger());
    return this.trouble;
  }

  /** The trouble of the steps that wait, or undefined. */
  get trouble(): unknown {
    const { release, letter, acknowledge, ledger } = this.steps;
    return release.error ?? letter.error ?? acknowledge.error ?? ledger.error;
  }

  private async releaseAll(counts: ConsumeCounts): Promise<void> {
    await inPortions([...this.releases.values()], async (release) => {
      const { entryId, order, rejected, pending } = release;
      toTheEnd(this.releases, entryId, release);
      const outcome = await this.register.release(this.partition, order, rejected.activeOrderId);
      this.releases.delete(entryId);
      if (pending) this.finished.add(entryId);
      else this.settled(entryId);
      counts.rejected += 1;
      // Counted once, however often the rejection is met: where the mark was taken back, or where Redis had lost it.
      if (outcome !== 'NOT_HELD' || !pending) metrics.ordersRejected.inc({ reason: rejected.reason });
      if (outcome !== 'NOT_HELD') this.noteLine(order, rejected, outcome);
    });
  }

  private noteLine(order: OrderEntry, rejected: Rejected, outcome: 'RELEASED' | 'REASSIGNED'): void {
    const to = rejected.activeOrderId === undefined ? '' : ` to order ${rejected.activeOrderId}`;
    // The release itself is done: the oldest line is given up before memory grows without limit.
    if (this.lines.length >= LEDGER_LINES_KEPT) this.lines.shift();
    this.lines.push({
      kind: 'RELEASE',
      voucherId: order.voucherId,
      orderId: order.orderId,
      reason: `${outcome}${to}: ${rejected.reason}`,
      actor: 'stream-consumer',
    });
  }

  private async writeLedger(): Promise<void> {
    const lines = [...this.lines];
    await this.ledger.note(...lines);
    this.lines.splice(0, lines.length);
  }

  private async writeLetters(counts: ConsumeCounts): Promise<void> {
    await inPortions([...this.letters.values()], async (letter) => {
      const { kind, record } = letter;
      toTheEnd(this.letters, record.entryId, letter);
      const outcome = await this.log.deadLetter(this.partition, record);
      this.letters.delete(record.entryId);
      this.settled(record.entryId);
      if (outcome.kind !== 'WRITTEN') return;
      this.lettersWritten = true;
      counts.deadLettered += 1;
      metrics.deadLetters.inc({ cause: kind });
    });
  }

  private async acknowledgeAll(counts: ConsumeCounts): Promise<void> {
    const ids = [...this.finished];
    for (let at = 0; at === 0 || at < ids.length; at += ACKNOWLEDGED_AT_ONCE) {
      const portion = ids.slice(at, at + ACKNOWLEDGED_AT_ONCE);
      counts.acknowledged += (await this.log.acknowledge(this.partition, portion)).acknowledged;
      for (const entryId of portion) {
        this.finished.delete(entryId);
        this.settled(entryId);
      }
    }
    this.lettersWritten = false;
  }
}

/** One kind of step: whether it failed last time, and when it may be tried again. */
class Step {
  error: unknown;
  private failures = 0;
  private dueMs = 0;

  isDue(nowMs: number): boolean {
    return nowMs >= this.dueMs;
  }

  async run(nowMs: number, work: Promise<void>): Promise<void> {
    try {
      await work;
      this.error = undefined;
      this.failures = 0;
      this.dueMs = 0;
    } catch (error) {
      this.error = error;
      this.failures += 1;
      this.dueMs = nowMs + pauseMs(this.failures, Math.random());
      metrics.consumerRetries.inc({ from: 'settlement' });
    }
  }
}

/** So that one that fails each time does not stand in the way of those behind it. */
function toTheEnd<T>(queue: Map<string, T>, entryId: string, item: T): void {
  queue.delete(entryId);
  queue.set(entryId, item);
}

/** Runs the work for all items, some at once. After a portion with a failure the rest is left; the first error is thrown. */
async function inPortions<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += IN_FLIGHT) {
    const outcomes = await Promise.allSettled(items.slice(at, at + IN_FLIGHT).map(work));
    const failed = outcomes.find((outcome) => outcome.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }
}
