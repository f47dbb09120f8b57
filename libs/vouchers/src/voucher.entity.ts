import { Column, Entity, PrimaryGeneratedColumn } from 'typeorm';

/** What a voucher is: shown to buyers, never touched by a sale. Ids are decimal strings: a bigint does not fit a JavaScript number. */
@Entity({ name: 'tb_voucher', synchronize: false })
export class Voucher {
  @PrimaryGeneratedColumn({ name: 'id', type: 'bigint' })
  id!: string;

  @Column({ name: 'shop_id', type: 'bigint' })
  shopId!: string;

  @Column({ name: 'title', type: 'varchar', length: 255 })
  title!: string;

  @Column({ name: 'sub_title', type: 'varchar', length: 255, nullable: true })
  subTitle!: string | null;

  @Column({ name: 'rules', type: 'varchar', length: 1024, nullable: true })
  rules!: string | null;

  /** Cents; a decimal string, as the driver gives a bigint. */
  @Column({ name: 'pay_value', type: 'bigint' })
  payValue!: string;

  /** Cents; a decimal string, as the driver gives a bigint. */
  @Column({ name: 'actual_value', type: 'bigint' })
  actualValue!: string;

  /** 0 ordinary, 1 sold in a limited sale. */
  @Column({ name: 'type', type: 'smallint' })
  type!: number;

  /** 1 on the shelf, 2 off the shelf, 3 expired. */
  @Column({ name: 'status', type: 'smallint' })
  status!: number;

  @Column({ name: 'create_time', type: 'timestamptz' })
  createTime!: Date;

  @Column({ name: 'update_time', type: 'timestamptz' })
  updateTime!: Date;
}
