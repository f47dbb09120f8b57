import { Inject, Injectable, Logger } from '@nestjs/common';
import { SETTINGS, type Settings } from '#config';
import { classifyDatabaseError, Database, DatabaseUnavailableError, sqlStateOf } from '#database';
import { LockService } from '#redis';
import { BatchProgress, type Group } from './batch-progress.js';
import { arrayLiteral } from './order-arrays.js';
import { FREE_VOUCHERS } from './order-statements.js';
import { OrderTransaction, type AttemptOutcome } from './order-transaction.js';
import { OrderRejector } from './order-rejector.js';
import type { BatchOutcome, OrderBatch, OrderResult } from './order.types.js';
import { countResults } from './metrics.js';
import { PartitionFence } from './partition-fence.js';

/** Tries of one group whose transaction met a conflict, or neither a row nor a reason, before it is judged by other means. */
const MAX_TRIES = 3;
/** Orders of one batch; the consumer reads fewer. */
const MAX_BATCH = 10_000;
/** No part of a batch is begun later than this share of CLAIM_MIN_IDLE_MS after its first trouble; what is left is deferred. */
const TROUBLE_SHARE = 1 / 4;
const LONGEST_LOCK_MS = 10_000;

/** What one group came to, beside the outcomes of a transaction. */
type GroupOutcome = AttemptOutcome | { readonly kind: 'LOCKED' } | { readonly kind: 'REFUSED'; readonly cause: string };

/**
 * Stores a batch: one transaction where all is well. Where it is not, the batch is cut into smaller groups until each bad order stands alone.
 * Every cut makes groups smaller, so the work ends.
 */
@Injectable()
export class BatchWriter {
  private readonly logger = new Logger(BatchWriter.name);
  private readonly troubleMs: number;
  private readonly lockMs: number;

  constructor(
    private readonly database: Database,
    private readonly transaction: OrderTransaction,
    private readonly rejector: OrderRejector,
    private readonly fence: PartitionFence,
    private readonly locks: LockService,
    @Inject(SETTINGS) settings: Settings,
  ) {
    this.troubleMs = settings.consumer.claimMinIdleMs * TROUBLE_SHARE;
    this.lockMs = Math.min(settings.consumer.claimMinIdleMs, LONGEST_LOCK_MS);
  }

  /** As OrderRepository.createOrders says. */
  async write(batch: OrderBatch): Promise<BatchOutcome> {
    if (batch.orders.length === 0) return { kind: 'DONE', results: [] };
    if (batch.orders.length > MAX_BATCH) throw new TypeError(`a batch holds at most ${MAX_BATCH} orders`);
    const progress = new BatchProgress(batch.orders, this.troubleMs);
    for (let group = progress.next(); group !== undefined; group = progress.next()) {
      const outcome = await this.attempt(batch, group);
      if (outcome.kind === 'STALE_EPOCH') return this.stale(batch.partition, outcome.epochNumber);
      if (outcome.kind === 'DONE') progress.settle(group, outcome.results);
      else await this.divide(batch, progress, group, outcome);
    }
    const results = progress.results();
    countResults(results);
    return { kind: 'DONE', results };
  }

  private async stale(partition: number, epochNumber: number | null): Promise<BatchOutcome> {
    return { kind: 'STALE_EPOCH', epochNumber: epochNumber ?? (await this.fence.epochNumber(partition)) };
  }

  /** One group in one transaction; conflicts are met by a new transaction around the whole, a few times. */
  private async attempt(batch: OrderBatch, group: Group): Promise<GroupOutcome> {
    if (group.kind !== 'ALONE') return this.tries(batch, group);
    // The lock only saves work: two processes would judge the same buyer's orders one after the other anyway.
    const lock = await this.locks.tryAcquire(`order:${group.orders[0]?.userId ?? ''}`, this.lockMs);
    if (lock === undefined) return { kind: 'DONE', results: [{ kind: 'DEFERRED' }] };
    try {
      return await this.tries(batch, group);
    } finally {
      await lock.release();
    }
  }

  private async tries(batch: OrderBatch, group: Group): Promise<GroupOutcome> {
    const { partition, epochNumber } = batch;
    for (let tries = 1; ; tries += 1) {
      try {
        const outcome = await this.transaction.run({
          partition,
          epochNumber,
          orders: group.orders,
          alone: group.kind === 'ALONE',
        });
        if (outcome.kind !== 'UNSETTLED' || tries >= MAX_TRIES) return outcome;
      } catch (error) {
        const kind = classifyDatabaseError(error);
        if (kind === 'FINAL') return { kind: 'REFUSED', cause: causeOf(error) };
        if (kind === 'LOCK_TIMEOUT') return { kind: 'LOCKED' };
        if (tries >= MAX_TRIES || sqlStateOf(error)?.startsWith('40') !== true) throw error;
      }
    }
  }

  private async divide(
    batch: OrderBatch,
    progress: BatchProgress,
    group: Group,
    outcome: Exclude<GroupOutcome, { kind: 'DONE' | 'STALE_EPOCH' }>,
  ): Promise<void> {
    if (progress.firstTrouble()) {
      this.logger.warn(`A batch of ${batch.orders.length} orders is being divided: ${outcome.kind}`);
    }
    switch (outcome.kind) {
      case 'SHORT':
        return progress.oneByOne(group, outcome.vouchers);
      case 'LOCKED':
        return this.aroundLocks(progress, group);
      case 'UNSETTLED':
        return this.halveOrReject(batch, progress, group, 'the row was neither stored nor refused');
      case 'REFUSED':
        return this.halveOrReject(batch, progress, group, outcome.cause);
    }
  }

  /** The orders of a locked voucher wait; those of the others go on. */
  private async aroundLocks(progress: BatchProgress, group: Group): Promise<void> {
    const vouchers = [...new Set(group.orders.map((order) => order.voucherId))];
    if (vouchers.length === 1) return progress.defer(group);
    const free = group.kind === 'WHOLE' ? await this.freeVouchers(vouchers) : new Set(vouchers);
    // No stock row is held: the lock is elsewhere (an order row of some buyer), and only trying tells which voucher it blocks.
    if (free.size === vouchers.length) return progress.byVoucher(group);
    progress.withoutVouchers(group, new Set(vouchers.filter((voucher) => !free.has(voucher))));
  }

  private async freeVouchers(vouchers: readonly string[]): Promise<Set<string>> {
    const rows = await this.database.query<{ voucher_id: string }>(FREE_VOUCHERS, [arrayLiteral(vouchers)]);
    return new Set(rows.map((row) => row.voucher_id));
  }

  private async halveOrReject(batch: OrderBatch, progress: BatchProgress, group: Group, cause: string): Promise<void> {
    const [order] = group.orders;
    if (group.orders.length > 1 || order === undefined) return progress.halve(group);
    progress.settle(group, [await this.reject(batch.partition, order, cause)]);
  }

  private async reject(partition: number, order: Group['orders'][number], cause: string): Promise<OrderResult> {
    try {
      const result = await this.rejector.reject(partition, order, 'REFUSED_BY_DATABASE', cause);
      this.logger.warn(`Order ${order.orderId} was refused by the database for good: ${cause}`);
      return result;
    } catch (error) {
      if (error instanceof DatabaseUnavailableError && error.kind === 'LOCK_TIMEOUT') return { kind: 'DEFERRED' };
      throw error;
    }
  }
}

function causeOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return `${message} (SQLSTATE ${sqlStateOf(error) ?? 'none'})`;
}
