import { Column, Entity, PrimaryColumn } from 'typeorm';

/** A rejected order whose row in tb_voucher_order was refused by the database. */
@Entity('tb_order_rejection')
export class OrderRejection {
  @PrimaryColumn({ type: 'bigint', name: 'order_id' })
  orderId!: string;

  @Column({ type: 'bigint', name: 'user_id' })
  userId!: string;

  @Column({ type: 'bigint', name: 'voucher_id' })
  voucherId!: string;

  @Column({ type: 'varchar', length: 32 })
  reason!: string;

  @Column({ type: 'varchar', length: 1024, nullable: true })
  cause!: string | null;

  @Column({ type: 'bigint', name: 'active_order_id', nullable: true })
  activeOrderId!: string | null;

  @Column({ type: 'timestamptz', name: 'create_time', default: () => 'now()' })
  createTime!: Date;
}
