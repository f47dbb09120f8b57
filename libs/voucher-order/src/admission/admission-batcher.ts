import { Logger } from '@nestjs/common';
import type { AdmissionOutcome, AdmissionRequest } from '#sale-register';
import { admissionBatchSize } from '../metrics.js';

/** Most purchases that one script call decides (the register's own limit). */
export const MAX_BATCH_SIZE = 1_000;
/** The next call of a partition is sent no sooner after the last one. The first purchase after a pause does not wait. */
const PACE_MS = 1;
/** How often deadlines are looked at while purchases are in hand. */
const SWEEP_INTERVAL_MS = 10;
/** A failing register is reported once in this time. */
const REPORT_INTERVAL_MS = 1_000;

const NOT_SENT: AdmissionOutcome = { kind: 'UNAVAILABLE', reason: 'NOT_SENT' };

/** Decides purchases of one partition in one call; the outcomes stand in the order of the purchases. */
export interface AdmissionRegister {
  admit(
    partition: number,
    purchases: readonly AdmissionRequest[],
    timeLeftMs: number,
  ): Promise<readonly AdmissionOutcome[]>;
}

/** Monotonic milliseconds; deadlines are instants of this clock. */
export type MonotonicClock = () => number;

/** One purchase in hand. It travels to the register as it is: no copy is made on the way. */
interface PurchaseInHand extends AdmissionRequest {
  readonly deadlineMs: number;
  /** Undefined once the answer was given. */
  answer: ((outcome: AdmissionOutcome) => void) | undefined;
}

interface Lane {
  readonly partition: number;
  /** In order of arrival. */
  waiting: PurchaseInHand[];
  /** The call that is sent and not yet answered. */
  call: readonly PurchaseInHand[] | undefined;
  /** PACE_MS have not passed since the last call was sent. */
  resting: boolean;
}

/**
 * Lets all purchases of one partition that arrived in the same tick travel in one script call. One call of a partition is under way at a time: as with a
 * group commit, what arrives meanwhile makes the next batch larger, and a large batch costs the register a fraction per purchase (one disk sync for all).
 *
 * Promises: each purchase hears exactly one outcome, at the latest one sweep after its deadline. One that was not sent by then is dropped
 * without effect (UNAVAILABLE, NOT_SENT); one that was sent and not answered is OUTCOME_UNKNOWN with its own id. Order of
 * arrival is kept. The number of purchases in hand is bounded by the caller.
 */
export class AdmissionBatcher {
  private readonly logger = new Logger(AdmissionBatcher.name);
  private readonly lanes = new Map<number, Lane>();
  private flushIsDue = false;
  private sweeper: NodeJS.Timeout | undefined;
  private reportedAtMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly register: AdmissionRegister,
    private readonly now: MonotonicClock = () => performance.now(),
  ) {}

  /** Puts the purchase into the batch of this tick. Never rejects. */
  submit(
    partition: number,
    voucherId: string,
    userId: string,
    orderId: string,
    deadlineMs: number,
  ): Promise<AdmissionOutcome> {
    return new Promise((answer) => {
      this.laneOf(partition).waiting.push({ voucherId, userId, orderId, deadlineMs, answer });
      this.flushSoon();
    });
  }

  /** Answers every purchase whose deadline has passed. Called by a timer while anything is in hand. */
  sweep(): void {
    const now = this.now();
    let inHand = false;
    for (const lane of this.lanes.values()) {
      if (lane.waiting.some((purchase) => purchase.deadlineMs <= now)) {
        lane.waiting = lane.waiting.filter((purchase) => !dropIfLate(purchase, now));
      }
      if (lane.call !== undefined) answerLate(lane.call, now);
      inHand ||= lane.waiting.length > 0 || lane.call !== undefined;
    }
    if (!inHand) {
      clearInterval(this.sweeper);
      this.sweeper = undefined;
    }
  }

  private laneOf(partition: number): Lane {
    let lane = this.lanes.get(partition);
    if (lane === undefined) {
      lane = { partition, waiting: [], call: undefined, resting: false };
      this.lanes.set(partition, lane);
    }
    return lane;
  }

  private flushSoon(): void {
    if (this.flushIsDue) return;
    this.flushIsDue = true;
    setImmediate(this.flush);
    this.sweeper ??= setInterval(() => this.sweep(), SWEEP_INTERVAL_MS).unref();
  }

  private readonly flush = (): void => {
    this.flushIsDue = false;
    for (const lane of this.lanes.values()) {
      // A batch of late purchases is not sent, and keeps nobody behind it waiting.
      while (lane.waiting.length > 0 && !lane.resting && lane.call === undefined) this.send(lane, this.takeBatch(lane));
    }
  };

  private readonly rested = (lane: Lane): void => {
    lane.resting = false;
    this.flush();
  };

  private takeBatch(lane: Lane): PurchaseInHand[] {
    if (lane.waiting.length > MAX_BATCH_SIZE) return lane.waiting.splice(0, MAX_BATCH_SIZE);
    const batch = lane.waiting;
    lane.waiting = [];
    return batch;
  }

  private send(lane: Lane, taken: PurchaseInHand[]): void {
    const now = this.now();
    let earliestMs = Number.POSITIVE_INFINITY;
    let late = false;
    for (const { deadlineMs } of taken) {
      if (deadlineMs <= now) late = true;
      else if (deadlineMs < earliestMs) earliestMs = deadlineMs;
    }
    const batch = late ? taken.filter((purchase) => !dropIfLate(purchase, now)) : taken;
    if (batch.length === 0) return;
    admissionBatchSize.observe(batch.length);
    lane.call = batch;
    lane.resting = true;
    setTimeout(this.rested, PACE_MS, lane);
    void this.decide(lane, batch, earliestMs - now);
  }

  private async decide(lane: Lane, batch: readonly PurchaseInHand[], timeLeftMs: number): Promise<void> {
    try {
      const outcomes = await this.register.admit(lane.partition, batch, timeLeftMs);
      if (outcomes.length !== batch.length) {
        throw new Error(`the register answered ${outcomes.length} of ${batch.length} purchases`);
      }
      for (let index = 0; index < batch.length; index += 1) settle(batch[index]!, outcomes[index]!);
    } catch (error) {
      this.report(error);
      // It was sent and its answer makes no sense: whether the orders exist is not known here.
      for (const purchase of batch) settle(purchase, unknown(purchase));
    } finally {
      lane.call = undefined;
      if (lane.waiting.length > 0) this.flushSoon();
    }
  }

  private report(error: unknown): void {
    const now = this.now();
    if (now - this.reportedAtMs < REPORT_INTERVAL_MS) return;
    this.reportedAtMs = now;
    this.logger.error('a batch of purchases has no readable answer', error instanceof Error ? error.stack : error);
  }
}

function settle(purchase: PurchaseInHand, outcome: AdmissionOutcome): void {
  const answer = purchase.answer;
  purchase.answer = undefined;
  answer?.(outcome);
}

function dropIfLate(purchase: PurchaseInHand, now: number): boolean {
  if (purchase.deadlineMs > now) return false;
  settle(purchase, NOT_SENT);
  return true;
}

function answerLate(call: readonly PurchaseInHand[], now: number): void {
  for (const purchase of call) {
    if (purchase.answer !== undefined && purchase.deadlineMs <= now) settle(purchase, unknown(purchase));
  }
}

function unknown(purchase: AdmissionRequest): AdmissionOutcome {
  return { kind: 'OUTCOME_UNKNOWN', candidateOrderId: purchase.orderId };
}
