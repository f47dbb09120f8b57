import { Column, Entity, PrimaryColumn } from 'typeorm';

/** One line of the stock ledger. */
@Entity('tb_stock_ledger')
export class StockLedgerEntry {
  @PrimaryColumn({ type: 'bigint', generated: 'identity', generatedIdentity: 'ALWAYS' })
  id!: string;

  @Column({ type: 'varchar', length: 32 })
  kind!: string;

  @Column({ type: 'bigint', name: 'voucher_id' })
  voucherId!: string;

  @Column({ type: 'bigint', name: 'order_id', nullable: true })
  orderId!: string | null;

  @Column({ type: 'bigint', name: 'before_value', nullable: true })
  before!: string | null;

  @Column({ type: 'bigint', name: 'after_value', nullable: true })
  after!: string | null;

  @Column({ type: 'varchar', length: 1024 })
  reason!: string;

  @Column({ type: 'varchar', length: 128 })
  actor!: string;

  @Column({ type: 'timestamptz', name: 'create_time', default: () => 'now()' })
  createTime!: Date;
}
