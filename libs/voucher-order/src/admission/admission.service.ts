import { Inject, Injectable } from '@nestjs/common';
import { SETTINGS, type Settings } from '#config';
import { within } from '#http';
import { RedisUnavailableError } from '#redis';
import { SaleDirectory, type AdmissionOutcome, type UnavailableReason } from '#sale-register';
import { VoucherReader } from '#vouchers';
import { admissionDuration, countAdmission, reportInFlight, rememberedRefusals } from '../metrics.js';
import { AdmissionBatcher } from './admission-batcher.js';
import { RefusalMemory } from './refusal-memory.js';
import { RebuildWishes } from './rebuild-wishes.js';
import { RedisIdWorker } from './redis-id-worker.js';

/** What a buyer hears of a purchase. NOT_PUBLISHED is no answer to a user: it was resolved into not found or unavailable. */
export type PurchaseOutcome =
  | Exclude<AdmissionOutcome, { readonly kind: 'UNAVAILABLE' | 'NOT_PUBLISHED' }>
  | { readonly kind: 'UNAVAILABLE'; readonly reason: UnavailableReason | 'NOT_PUBLISHED' | 'NO_ORDER_ID' }
  | { readonly kind: 'VOUCHER_NOT_FOUND' };

const OVERLOADED: PurchaseOutcome = { kind: 'OVERLOADED' };
const NOT_SENT: PurchaseOutcome = { kind: 'UNAVAILABLE', reason: 'NOT_SENT' };
const NO_ORDER_ID: PurchaseOutcome = { kind: 'UNAVAILABLE', reason: 'NO_ORDER_ID' };
const NOT_PUBLISHED: PurchaseOutcome = { kind: 'UNAVAILABLE', reason: 'NOT_PUBLISHED' };
const VOUCHER_NOT_FOUND: PurchaseOutcome = { kind: 'VOUCHER_NOT_FOUND' };

/** The answer is ready this long before the request's deadline, so that it is on the wire in time; at most a tenth of the timeout. */
const ANSWER_MARGIN_MS = 50;
const ID_RETRY_PAUSE_MS = 50;

/** Decides purchases: makes the order id, joins the batch of this tick, awaits the outcome. */
@Injectable()
export class AdmissionService {
  private readonly timeLimitMs: number;
  private readonly maxInFlight: number;
  private inFlight = 0;
  private turn: Promise<void> | undefined;
  /** Partitions that were found closed when last heard of. */
  private readonly closed = new Set<number>();

  constructor(
    private readonly batcher: AdmissionBatcher,
    private readonly ids: RedisIdWorker,
    private readonly directory: SaleDirectory,
    private readonly vouchers: VoucherReader,
    private readonly rebuilds: RebuildWishes,
    private readonly refusals: RefusalMemory,
    @Inject(SETTINGS) settings: Settings,
  ) {
    const { requestTimeoutMs } = settings.http;
    this.timeLimitMs = requestTimeoutMs - Math.min(ANSWER_MARGIN_MS, requestTimeoutMs / 10);
    this.maxInFlight = settings.admission.maxInFlight;
    reportInFlight(() => this.inFlight);
  }

  /**
   * Decides one purchase within REQUEST_TIMEOUT_MS of `startMs` (a time of `performance.now()`; default: this call). Ids are canonical. Above
   * MAX_IN_FLIGHT purchases in hand it is OVERLOADED before anything is asked. Repeating a purchase is always safe. Rejects only for a defect.
   */
  async admit(voucherId: string, userId: string, startMs = performance.now()): Promise<PurchaseOutcome> {
    const remembered = this.refusals.answer(voucherId, userId);
    if (remembered !== undefined) {
      countAdmission(remembered.kind);
      rememberedRefusals.inc();
      await this.endOfTurn();
      return remembered;
    }
    if (this.inFlight >= this.maxInFlight) {
      countAdmission('OVERLOADED');
      return OVERLOADED;
    }
    this.inFlight += 1;
    try {
      const outcome = await this.decide(voucherId, userId, startMs + this.timeLimitMs);
      countAdmission(outcome.kind);
      return outcome;
    } finally {
      this.inFlight -= 1;
      admissionDuration.observe((performance.now() - startMs) / 1_000);
    }
  }

  /**
   * The end of this turn of the event loop, one promise for all: answers from memory are then written one after the other, and a reader that sleeps
   * is woken once for all of them instead of once for each. That wake-up is charged to who writes, and costs as much as the rest of the answer.
   */
  private endOfTurn(): Promise<void> {
    return (this.turn ??= new Promise((resolve) => {
      setImmediate(() => {
        this.turn = undefined;
        resolve();
      });
    }));
  }

  private async decide(voucherId: string, userId: string, deadlineMs: number): Promise<PurchaseOutcome> {
    const partition = this.directory.known(voucherId) ?? (await this.locate(voucherId, deadlineMs));
    if (typeof partition !== 'number') return partition;
    const orderId = this.ids.nextId() ?? (await this.awaitId(deadlineMs));
    if (orderId === undefined) return NO_ORDER_ID;
    const outcome = await this.batcher.submit(partition, voucherId, userId, orderId, deadlineMs);
    if (outcome.kind === 'UNAVAILABLE') {
      this.heardUnavailable(partition, voucherId, outcome.reason);
      return outcome;
    }
    if (this.closed.size > 0 && outcome.kind !== 'OUTCOME_UNKNOWN') this.closed.delete(partition);
    if (outcome.kind === 'SOLD_OUT' || outcome.kind === 'NOT_STARTED' || outcome.kind === 'ENDED') {
      this.refusals.note(partition, voucherId);
    }
    return outcome.kind === 'NOT_PUBLISHED' ? this.unpublished(voucherId, partition, deadlineMs) : outcome;
  }

  /**
   * Where the voucher is sold: by Redis, else by the record; else the answer to the buyer. In a cluster the node that knows where may be away while
   * the one that sells is well.
   */
  private async locate(voucherId: string, deadlineMs: number): Promise<number | PurchaseOutcome> {
    let undecided = NOT_PUBLISHED;
    try {
      const partition = await this.directory.partitionOf(voucherId);
      if (partition !== undefined) return partition;
    } catch (error) {
      if (!(error instanceof RedisUnavailableError)) throw error;
      undecided = NOT_SENT;
    }
    const knowledge = await this.vouchers.knowsVoucher(voucherId, deadlineMs - performance.now());
    if (knowledge.kind === 'UNKNOWN') return VOUCHER_NOT_FOUND;
    if (knowledge.kind === 'UNDECIDED') return undecided;
    this.directory.remember(voucherId, knowledge.partition);
    return knowledge.partition;
  }

  /**
   * No leased number is at hand: one round trip, shared by all that wait. In a cluster the counter's node may be failing over while the voucher's is
   * well: asked again for as long as the purchase may take.
   */
  private async awaitId(deadlineMs: number): Promise<string | undefined> {
    for (;;) {
      await within(this.ids.refill(), deadlineMs - performance.now());
      const orderId = this.ids.nextId();
      if (orderId !== undefined || performance.now() + ID_RETRY_PAUSE_MS >= deadlineMs) return orderId;
      await new Promise((resolve) => setTimeout(resolve, ID_RETRY_PAUSE_MS));
    }
  }

  /** The register does not have the voucher: the record says whether there is none, or whether it must be put back. */
  private async unpublished(voucherId: string, partition: number, deadlineMs: number): Promise<PurchaseOutcome> {
    const knowledge = await this.vouchers.knowsVoucher(voucherId, deadlineMs - performance.now());
    switch (knowledge.kind) {
      case 'UNKNOWN':
        return VOUCHER_NOT_FOUND;
      case 'KNOWN':
        this.rebuilds.wish(knowledge.partition, voucherId, 'NOT_PUBLISHED');
        return NOT_PUBLISHED;
      case 'UNDECIDED':
        this.rebuilds.wish(partition, voucherId, 'NOT_PUBLISHED');
        return NOT_PUBLISHED;
    }
  }

  private heardUnavailable(partition: number, voucherId: string, reason: UnavailableReason): void {
    switch (reason) {
      case 'EPOCH':
        // Once per closing: the counters may have gone back with the rest of the data.
        if (!this.closed.has(partition)) this.ids.drop();
        this.closed.add(partition);
        return this.rebuilds.closed(partition, voucherId);
      case 'INCONSISTENT':
        return this.rebuilds.wish(partition, voucherId, 'INCONSISTENT');
      case 'REFUSED_WRITE':
      case 'NOT_SENT':
      case 'SERVER_STATE':
        return;
    }
  }
}
