import { Logger } from '@nestjs/common';
import type { OrderReader, StockLedger } from '#orders';
import type { RebuildRegister, SaleRegister } from '#sale-register';
import type { Batch, HeldOrder } from './batch.js';
import { BatchStorer } from './batch-storer.js';
import { type ConsumeCounts, noCounts } from './consume-counts.js';
import { type DecodedRead, decodeRead, Intake } from './intake.js';
import { LostOrders } from './lost-orders.js';
import { LoopHealth, type LoopStatus } from './loop-health.js';
import * as metrics from './metrics.js';
import { PartitionReader, type ReaderFaces, type ReaderOptions, type ReadResult } from './partition-reader.js';
import { describeError, pauseMs } from './retry-policy.js';
import { SettlementQueue } from './settlement-queue.js';
import { VoucherPauses } from './voucher-pauses.js';

/** How one partition's consumer fares. */
export interface PartitionStatus extends LoopStatus {
  readonly partition: number;
  /** The consumer's name in the group. */
  readonly name: string;
  /** Entries read and not yet settled. */
  readonly inHand: number;
  /** Entries whose outcome is durable but could not be told to Redis yet, and orders that Redis lost. */
  readonly unsettled: number;
  /** Vouchers whose orders wait because the voucher's row is locked. */
  readonly lockedVouchers: number;
}

export interface ConsumerFaces extends ReaderFaces {
  readonly register: SaleRegister;
  readonly rebuild: RebuildRegister;
  readonly reader: OrderReader;
  readonly ledger: StockLedger;
}

export interface ConsumerOptions extends ReaderOptions {
  readonly maxDeliveries: number;
}

type ReadAhead = { readonly result: DecodedRead } | { readonly error: unknown };

/** So many batches may wait to be settled; then nothing new is read until Redis takes them. */
const UNSETTLED_BATCHES = 10;
/** The epoch number changes between two tries of a batch at most so often before the turn counts as failed. */
const MOST_STALE_ANSWERS = 5;

/**
 * Consumes one partition. A turn settles what is owed to Redis, takes the next batch, begins to read the one after it, has this one stored, and
 * settles it beside the next turn. Entries are acknowledged only after their outcome is durable; what fails stays in hand or in the pending list.
 */
export class PartitionConsumer {
  private readonly logger = new Logger('StreamConsumer');
  private readonly health: LoopHealth;
  private readonly pauses = new VoucherPauses();
  private readonly settlements: SettlementQueue;
  private readonly lost: LostOrders;
  private readonly storer: BatchStorer;
  private readonly input: PartitionReader;
  private readonly intake: Intake;

  private batch: Batch = { epochNumber: 0, orders: [] };
  private ahead: Promise<ReadAhead> | undefined;
  private byHand: Promise<unknown> = Promise.resolve();
  /** What is being told to Redis while the next batch is stored. Never rejects. */
  private settling: Promise<void> | undefined;
  private loop: Promise<void> | undefined;
  private stopping = false;
  private wake: (() => void) | undefined;

  constructor(
    faces: ConsumerFaces,
    private readonly options: ConsumerOptions,
  ) {
    const { partition, batchSize } = options;
    const settled = (entryId: string) => this.intake.settled(entryId);
    this.health = new LoopHealth(partition);
    this.input = new PartitionReader(faces, options);
    this.settlements = new SettlementQueue(partition, faces.log, faces.register, faces.ledger, settled);
    this.lost = new LostOrders(
      partition,
      faces.log,
      faces.rebuild,
      faces.orders,
      faces.reader,
      this.settlements,
      settled,
    );
    this.intake = new Intake(partition, this.settlements, this.lost);
    this.storer = new BatchStorer(
      { partition, batchSize, maxDeliveries: options.maxDeliveries },
      faces.orders,
      this.pauses,
      this.settlements,
      (held, epochNumber) => this.leave(held, epochNumber),
      () => this.health.beat(),
    );
    this.dropOwnName = () => faces.log.dropIdleConsumer(partition, options.name, 0);
  }

  private readonly dropOwnName: () => Promise<unknown>;

  /** Starts the loop. Starting twice is harmless. */
  start(): void {
    this.loop ??= this.run();
  }

  /** Ends the loop as StreamConsumer.stop describes; after `limitMs` it is left to itself. Never rejects. */
  async stop(limitMs: number): Promise<void> {
    this.stopping = true;
    this.wake?.();
    this.input.close();
    const work = this.loop ?? this.byHand.catch(() => undefined).then(() => this.finish());
    let timer: NodeJS.Timeout | undefined;
    const limit = new Promise<void>((resolve) => (timer = setTimeout(resolve, limitMs)));
    await Promise.race([work.catch(() => undefined), limit]);
    clearTimeout(timer);
  }

  /** One pass by hand, as StreamConsumer.runOnce describes. Passes of one partition follow one another. */
  runOnce(): Promise<ConsumeCounts> {
    const pass = this.byHand.catch(() => undefined).then(() => this.pass());
    this.byHand = pass;
    return pass;
  }

  status(): PartitionStatus {
    const trouble = this.settlements.trouble ?? this.lost.trouble;
    const loop = this.health.status();
    return {
      partition: this.options.partition,
      name: this.options.name,
      ...loop,
      lastError: loop.lastError ?? (trouble === undefined ? undefined : describeError(trouble)),
      inHand: this.intake.size,
      unsettled: this.settlements.size + this.lost.size,
      lockedVouchers: this.pauses.size,
    };
  }

  private async pass(): Promise<ConsumeCounts> {
    const { plan } = this.input;
    const counts = noCounts();
    this.pauses.clear();
    plan.restart();
    plan.sweepNow();
    for (;;) {
      const source = await this.turn(counts, false);
      if (source === 'NEW' && !plan.isSweeping && !plan.isReadingOwnPending) return counts;
    }
  }

  private async run(): Promise<void> {
    // A pass by hand that is under way comes to its end first.
    await this.byHand.catch(() => undefined);
    while (!this.stopping) {
      try {
        await this.turn(noCounts(), true);
        this.health.succeeded();
      } catch (error) {
        if (!this.stopping) await this.pause(this.health.failed(error));
      }
    }
    await this.finish();
  }

  /** One turn; the source that was read, or undefined where a batch was in hand. Adds to `counts`. Throws what prevented it. */
  private async turn(counts: ConsumeCounts, wait: boolean): Promise<ReadResult['source'] | undefined> {
    this.health.beat();
    if (this.settling === undefined || !wait) await this.settle(counts, !wait);
    await this.lost.turn(performance.now(), counts, !wait);
    const owed = this.settlements.size + this.lost.size;
    if (owed >= UNSETTLED_BATCHES * this.options.batchSize) {
      throw new Error(`${owed} entries wait to be settled`, { cause: this.settlements.trouble ?? this.lost.trouble });
    }
    const source = this.batch.orders.length > 0 ? undefined : await this.fetch(counts, wait);
    if (this.batch.orders.length > 0) {
      if (wait && !this.stopping && !this.health.isFailing) this.ahead ??= captured(this.input.read(wait));
      const end = metrics.consumeDuration.startTimer();
      await this.store(counts);
      if (source === 'OWN_PENDING') this.postponeLocked();
      await this.settling;
      const settled = this.settle(counts, !wait).finally(end);
      // The loop goes on: acknowledging this batch costs a round trip, in which the next one is stored.
      if (!wait) await settled;
    } else {
      await this.settle(counts, !wait);
    }
    if (source === 'CLAIM' && !this.input.plan.isSweeping && this.intake.hasLeft) await this.recallLost();
    return source;
  }

  /** One at a time: a settling under way comes to its end first. Never rejects. */
  private settle(counts: ConsumeCounts, force: boolean): Promise<void> {
    const settling = (this.settling ?? Promise.resolve())
      .then(() => this.flush(counts, force))
      .finally(() => {
        if (this.settling === settling) this.settling = undefined;
      });
    this.settling = settling;
    return settling;
  }

  private async flush(counts: ConsumeCounts, force: boolean): Promise<void> {
    const trouble = (await this.settlements.flush(performance.now(), counts, force)) ?? this.lost.trouble;
    if (trouble !== undefined) this.health.note(describeError(trouble));
  }

  private async fetch(counts: ConsumeCounts, wait: boolean): Promise<ReadResult['source']> {
    const ahead = this.ahead;
    this.ahead = undefined;
    const read = ahead === undefined ? { result: decodeRead(await this.input.read(wait)) } : await ahead;
    if ('error' in read) throw read.error;
    this.health.beat();
    this.batch = this.intake.take(read.result, counts);
    return read.result.source;
  }

  private async store(counts: ConsumeCounts): Promise<void> {
    for (let tries = 0; tries < MOST_STALE_ANSWERS; tries += 1) {
      const outcome = await this.storer.store(this.batch, counts);
      if (outcome.kind === 'DONE') return;
      this.input.epochNumber = outcome.epochNumber;
      this.batch.orders.push(...this.intake.recall(outcome.epochNumber));
      await this.lost.sort(this.batch, outcome.epochNumber);
    }
    throw new Error(`the epoch number of partition ${this.options.partition} keeps changing`);
  }

  /** Once a sweep: left orders may be lost with Redis, and no other order come by whose batch would tell. */
  private async recallLost(): Promise<void> {
    const epochNumber = await this.input.readEpochNumber();
    const recalled = this.intake.recall(epochNumber);
    if (recalled.length === 0) return;
    this.batch.orders.push(...recalled);
    await this.lost.sort(this.batch, epochNumber);
  }

  /** Where every locked voucher is to wait, reading on through the left orders would find none to try. */
  private postponeLocked(): void {
    const nowMs = performance.now();
    const nextMs = this.pauses.nextEndMs();
    if (nextMs !== undefined && this.pauses.allPaused(nowMs)) this.input.plan.postponeOwnPending(nextMs);
  }

  /** The entry stays pending, to be read again when the first locked voucher may be tried again. */
  private leave(held: HeldOrder, epochNumber: number): void {
    this.intake.left(held, epochNumber);
    // A pass by hand looks once.
    if (this.loop === undefined) return;
    const nowMs = performance.now();
    this.input.plan.recheckOwnPending(this.pauses.nextEndMs() ?? nowMs + pauseMs(4, Math.random()));
  }

  private async pause(limitMs: number): Promise<void> {
    this.input.plan.restart();
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, limitMs);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.wake = undefined;
  }

  /** After the last turn: what was read is finished if it can be, once; the rest stays pending. Never rejects. */
  private async finish(): Promise<void> {
    const counts = noCounts();
    try {
      await this.store(counts);
      if (this.ahead !== undefined) {
        await this.fetch(counts, false).catch(() => undefined);
        await this.store(counts);
      }
      await this.settle(counts, true);
      this.batch = this.intake.take(decodeRead(await this.input.readLeft()), counts);
      await this.store(counts);
    } catch (error) {
      this.logger.warn(`partition ${this.options.partition}: work left pending at the stop: ${describeError(error)}`);
    }
    await this.lost.giveUp(counts);
    if (this.lost.size > 0) {
      const why = describeError(this.lost.trouble);
      this.logger.error(`partition ${this.options.partition}: ${this.lost.size} orders that Redis lost: ${why}`);
    }
    await this.settle(counts, true);
    this.input.close();
    await this.dropOwnName().catch(() => undefined);
  }
}

/** The outcome of a read that is awaited later; it never rejects. */
function captured(read: Promise<ReadResult>): Promise<ReadAhead> {
  return read.then(
    (result) => ({ result: decodeRead(result) }),
    (error: unknown) => ({ error }),
  );
}
