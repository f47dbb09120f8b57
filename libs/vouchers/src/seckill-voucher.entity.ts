import { Column, Entity, PrimaryColumn } from 'typeorm';

/** The sale of one voucher, one row each. `stock` is cut by stored orders only; `units` is what was offered; both move together at a restock. */
@Entity({ name: 'tb_seckill_voucher', synchronize: false })
export class SeckillVoucher {
  @PrimaryColumn({ name: 'voucher_id', type: 'bigint' })
  voucherId!: string;

  /** Units that no stored order holds. */
  @Column({ name: 'stock', type: 'integer' })
  stock!: number;

  /** Units offered. */
  @Column({ name: 'units', type: 'integer' })
  units!: number;

  /** Raised by every change of `units`; the register applies a change once per version. */
  @Column({ name: 'units_version', type: 'bigint' })
  unitsVersion!: string;

  /** Fixed at publication: all Redis keys of the sale carry it as their hash tag. */
  @Column({ name: 'partition_id', type: 'integer' })
  partitionId!: number;

  @Column({ name: 'begin_time', type: 'timestamptz' })
  beginTime!: Date;

  @Column({ name: 'end_time', type: 'timestamptz' })
  endTime!: Date;

  @Column({ name: 'create_time', type: 'timestamptz' })
  createTime!: Date;

  @Column({ name: 'update_time', type: 'timestamptz' })
  updateTime!: Date;
}
