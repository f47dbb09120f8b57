import { Injectable } from '@nestjs/common';
import { BatchWriter } from './batch-writer.js';
import type { BatchOutcome, OrderBatch, OrderResult, OrderToReject, RejectionReason } from './order.types.js';
import { OrderRejector } from './order-rejector.js';
import { PartitionFence } from './partition-fence.js';

/** Writes orders and rejections. The only way into the order tables. */
@Injectable()
export class OrderRepository {
  constructor(
    private readonly writer: BatchWriter,
    private readonly rejector: OrderRejector,
    private readonly fence: PartitionFence,
  ) {}

  /**
   * Stores a batch, normally in one transaction, and answers what became of each order. Storing the same order again, in any batch, in any
   * process, changes nothing. Bad orders are separated from good ones and rejected durably.
   *
   * STALE_EPOCH: the fence was raised since the batch was read; nothing of it counts (parts that had been stored before are found again by id).
   * @throws DatabaseUnavailableError for passing trouble: leave the entries pending and give the same batch again later.
   */
  createOrders(batch: OrderBatch): Promise<BatchOutcome> {
    return this.writer.write(batch);
  }

  /**
   * Records durably that an order will never be stored, unless it already is. `cause` is for operators. The answer is what holds now: REJECTED
   * (with `activeOrderId` where the buyer has another active order of that voucher), ALREADY_STORED, ALREADY_CANCELLED or FOREIGN_ID.
   * Idempotent; release the unit only after REJECTED.
   * @throws DatabaseUnavailableError
   */
  rejectOrder(partition: number, order: OrderToReject, reason: RejectionReason, cause: string): Promise<OrderResult> {
    return this.rejector.reject(partition, order, reason, cause);
  }

  /** Makes the partition known to the fence; harmless where it is. @throws DatabaseUnavailableError */
  registerPartition(partition: number): Promise<void> {
    return this.fence.register(partition);
  }

  /** Every partition that was ever registered, ascending: orders may come from each of them. @throws DatabaseUnavailableError */
  partitions(): Promise<number[]> {
    return this.fence.partitions();
  }

  /** The number to read batches under; registers the partition where it is unknown. @throws DatabaseUnavailableError */
  epochNumber(partition: number): Promise<number> {
    return this.fence.epochNumber(partition);
  }

  /**
   * Raises the partition's epoch number and answers the new one. When it returns, every transaction under an older number has ended, and none
   * will store anything any more. `history`: the data history of Redis for which the whole partition is being rebuilt, kept with the number.
   * @throws DatabaseUnavailableError (LOCK_TIMEOUT where running batches do not end in time: try again)
   */
  raiseEpochNumber(partition: number, history?: string): Promise<number> {
    return this.fence.raise(partition, history);
  }

  /** The data history of Redis for which each partition was last rebuilt, where known. @throws DatabaseUnavailableError */
  rebuiltHistories(): Promise<Map<number, string>> {
    return this.fence.histories();
  }
}
