import { Injectable } from '@nestjs/common';
import { Database } from '#database';

/** First key of the two-key advisory locks; the second is the partition. Storing holds it shared, the fence and bare rejections exclusive. */
const LOCK_SPACE = 7_315_002;

/** The opening statement of a transaction that stores into the partition: from then on the fence cannot be raised until it ends. */
export function sharedPartitionLock(partition: number): string {
  return `SELECT pg_advisory_xact_lock_shared(${LOCK_SPACE}, ${checkedPartition(partition)})`;
}

/** The opening statement of a transaction that must be alone in the partition. */
export function exclusivePartitionLock(partition: number): string {
  return `SELECT pg_advisory_xact_lock(${LOCK_SPACE}, ${checkedPartition(partition)})`;
}

/** The epoch number of each partition. Methods as OrderRepository describes them. */
@Injectable()
export class PartitionFence {
  constructor(private readonly database: Database) {}

  async register(partition: number): Promise<void> {
    await this.database.query('INSERT INTO tb_partition (partition_id) VALUES ($1) ON CONFLICT DO NOTHING', [
      checkedPartition(partition),
    ]);
  }

  async partitions(): Promise<number[]> {
    const rows = await this.database.query<{ partition_id: number }>(
      'SELECT partition_id FROM tb_partition ORDER BY partition_id',
    );
    return rows.map((row) => Number(row.partition_id));
  }

  async epochNumber(partition: number): Promise<number> {
    for (let tries = 0; tries < 2; tries += 1) {
      const rows = await this.database.query<{ epoch_number: string }>(
        'SELECT epoch_number FROM tb_partition WHERE partition_id = $1',
        [checkedPartition(partition)],
      );
      if (rows[0] !== undefined) return Number(rows[0].epoch_number);
      await this.register(partition);
    }
    throw new Error(`partition ${partition} was removed while it was being registered`);
  }

  async histories(): Promise<Map<number, string>> {
    const rows = await this.database.query<{ partition_id: number; history: string }>(
      'SELECT partition_id, history FROM tb_partition WHERE history IS NOT NULL',
    );
    return new Map(rows.map((row) => [Number(row.partition_id), row.history]));
  }

  async raise(partition: number, history?: string): Promise<number> {
    return this.database.transaction(
      async (_manager, session) => {
        const rows = await session.query<{ epoch_number: string }>(
          `INSERT INTO tb_partition AS p (partition_id, epoch_number, history) VALUES ($1, 2, $2)
           ON CONFLICT (partition_id) DO UPDATE
             SET epoch_number = p.epoch_number + 1, history = coalesce(excluded.history, p.history), update_time = now()
           RETURNING epoch_number`,
          [partition, history ?? null],
        );
        return Number(rows[0]?.epoch_number);
      },
      { opening: exclusivePartitionLock(partition) },
    );
  }
}

/** The partition goes into SQL text: whatever is no small whole number is a defect of the caller. */
function checkedPartition(partition: number): number {
  if (!Number.isInteger(partition) || partition < 0 || partition > 0x7fffffff) {
    throw new TypeError(`a partition is a whole number from 0 on, not ${String(partition)}`);
  }
  return partition;
}
