import { entryTimeMs } from '#order-stream';
import type { OrderRepository, OrderResult } from '#orders';
import type { Batch, HeldOrder } from './batch.js';
import type { ConsumeCounts } from './consume-counts.js';
import * as metrics from './metrics.js';
import { nextGroupSize } from './retry-policy.js';
import type { SettlementQueue } from './settlement-queue.js';
import type { VoucherPauses } from './voucher-pauses.js';

/** What a pass over a batch came to. STALE: nothing of the rest was stored; `epochNumber` is the one that holds now. */
export type StoreOutcome = { readonly kind: 'DONE' } | { readonly kind: 'STALE'; readonly epochNumber: number };

export interface StorerOptions {
  readonly partition: number;
  /** Orders per transaction at most. */
  readonly batchSize: number;
  /** An entry handed out more often than this is tried alone. */
  readonly maxDeliveries: number;
}

const NO_ORDER_CAUSES = {
  FOREIGN_ID: 'the order id belongs to an order of another buyer or voucher',
  UNKNOWN_VOUCHER: 'the database knows no such voucher',
} as const;

/**
 * Has the orders of a batch stored and hands each result on. One transaction for the whole batch, normally. After a failed transaction the next one
 * takes half as many, down to one, so that an order which fails in any company is found and set aside while the others go on; each success doubles
 * the number again. An entry that was handed out too often (whoever held it may have died of it) is tried alone, after all others. How often
 * something was tried ends no order: only its own result does.
 */
export class BatchStorer {
  private groupSize: number;

  constructor(
    private readonly options: StorerOptions,
    private readonly orders: OrderRepository,
    private readonly pauses: VoucherPauses,
    private readonly settlements: SettlementQueue,
    /** Hears of each order that stays pending, to be read again later, and of the number it was read under. */
    private readonly left: (held: HeldOrder, epochNumber: number) => void,
    /** Called before each transaction: the work is alive. */
    private readonly beat: () => void,
  ) {
    this.groupSize = options.batchSize;
  }

  /**
   * Takes orders off the batch until it is empty. Throws what the repository throws (passing trouble); the batch then holds the orders that are
   * still to be decided, or has left one that failed alone in the pending list.
   */
  async store(batch: Batch, counts: ConsumeCounts): Promise<StoreOutcome> {
    while (batch.orders.length > 0) {
      this.leavePaused(batch, counts);
      const group = this.nextGroup(batch);
      if (group.length === 0) continue;
      const outcome = await this.storeGroup(batch, group);
      if (outcome.kind === 'STALE_EPOCH') return { kind: 'STALE', epochNumber: outcome.epochNumber };
      this.settleGroup(batch, group, outcome.results, counts);
      const taken = new Set(group);
      batch.orders = batch.orders.filter((held) => !taken.has(held));
    }
    return { kind: 'DONE' };
  }

  private async storeGroup(batch: Batch, group: readonly HeldOrder[]) {
    const { partition, batchSize } = this.options;
    this.beat();
    metrics.batchSize.observe(group.length);
    try {
      const outcome = await this.orders.createOrders({
        partition,
        epochNumber: batch.epochNumber,
        orders: group.map(({ entryId, order: { orderId, userId, voucherId } }) => ({
          orderId,
          userId,
          voucherId,
          acceptedAtMs: entryTimeMs(entryId),
        })),
      });
      this.groupSize = nextGroupSize(this.groupSize, true, batchSize);
      return outcome;
    } catch (error) {
      const failed = new Set(group);
      batch.orders = batch.orders.filter((held) => !failed.has(held));
      // The others come first next time. One that failed alone is left to a later read, so that it holds up nothing.
      if (group.length > 1) batch.orders.push(...group);
      else for (const held of group) this.left(held, batch.epochNumber);
      this.groupSize = nextGroupSize(Math.min(this.groupSize, group.length), false, batchSize);
      throw error;
    }
  }

  private leavePaused(batch: Batch, counts: ConsumeCounts): void {
    if (this.pauses.size === 0) return;
    const nowMs = performance.now();
    batch.orders = batch.orders.filter((held) => {
      if (!this.pauses.isPaused(held.order.voucherId, nowMs)) return true;
      this.leave(held, batch, counts);
      return false;
    });
  }

  private nextGroup(batch: Batch): HeldOrder[] {
    const { maxDeliveries } = this.options;
    const company = batch.orders.filter((held) => held.deliveries <= maxDeliveries);
    return company.length > 0 ? company.slice(0, this.groupSize) : batch.orders.slice(0, 1);
  }

  private settleGroup(
    batch: Batch,
    group: readonly HeldOrder[],
    results: readonly OrderResult[],
    counts: ConsumeCounts,
  ): void {
    if (results.length !== group.length) throw new Error(`${results.length} results for ${group.length} orders`);
    const decided = new Set<string>();
    const deferred = new Set<string>();
    group.forEach(({ order }, at) => (results[at]?.kind === 'DEFERRED' ? deferred : decided).add(order.voucherId));
    // Where others of the voucher were decided its row is not locked: only that one order had to wait.
    for (const voucherId of decided) this.pauses.succeed(voucherId);
    for (const voucherId of deferred) if (!decided.has(voucherId)) this.pauses.defer(voucherId, performance.now());
    group.forEach((held, at) => this.settle(batch, held, results[at] as OrderResult, counts));
  }

  private settle(batch: Batch, held: HeldOrder, result: OrderResult, counts: ConsumeCounts): void {
    const { entryId, order } = held;
    switch (result.kind) {
      case 'STORED':
        counts.stored += 1;
        return this.settlements.acknowledge(entryId);
      case 'ALREADY_STORED':
      case 'ALREADY_CANCELLED':
        counts.alreadySettled += 1;
        return this.settlements.acknowledge(entryId);
      case 'REJECTED':
        return this.settlements.release(entryId, order, result, { pending: true });
      case 'FOREIGN_ID':
      case 'UNKNOWN_VOUCHER':
        return this.settlements.deadLetter(result.kind, {
          entryId,
          cause: `${result.kind}: ${NO_ORDER_CAUSES[result.kind]}`,
          fields: held.fields,
          deliveries: held.deliveries,
          firstSeenMs: entryTimeMs(entryId),
        });
      case 'DEFERRED':
        return this.leave(held, batch, counts);
    }
  }

  private leave(held: HeldOrder, batch: Batch, counts: ConsumeCounts): void {
    counts.deferred += 1;
    metrics.deferredOrders.inc();
    this.left(held, batch.epochNumber);
  }
}
