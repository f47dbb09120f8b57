import { Column, Entity, PrimaryColumn } from 'typeorm';

/** One order. Ids are decimal strings; the numbers of `status` are ORDER_STATUS. */
@Entity('tb_voucher_order')
export class VoucherOrder {
  @PrimaryColumn({ type: 'bigint' })
  id!: string;

  @Column({ type: 'bigint', name: 'user_id' })
  userId!: string;

  @Column({ type: 'bigint', name: 'voucher_id' })
  voucherId!: string;

  @Column({ type: 'smallint', name: 'pay_type', default: 1 })
  payType!: number;

  @Column({ type: 'smallint', default: 1 })
  status!: number;

  @Column({ type: 'varchar', length: 32, nullable: true })
  reason!: string | null;

  /** For operators, never shown to buyers: what the database said. */
  @Column({ type: 'varchar', length: 1024, nullable: true })
  cause!: string | null;

  /** The buyer's other order, where that is why this one was rejected. */
  @Column({ type: 'bigint', name: 'active_order_id', nullable: true })
  activeOrderId!: string | null;

  @Column({ type: 'timestamptz', name: 'create_time', default: () => 'now()' })
  createTime!: Date;

  @Column({ type: 'timestamptz', name: 'pay_time', nullable: true })
  payTime!: Date | null;

  @Column({ type: 'timestamptz', name: 'use_time', nullable: true })
  useTime!: Date | null;

  @Column({ type: 'timestamptz', name: 'refund_time', nullable: true })
  refundTime!: Date | null;

  @Column({ type: 'timestamptz', name: 'update_time', default: () => 'now()' })
  updateTime!: Date;
}
