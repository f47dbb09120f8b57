import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Orders, rejections that have no order row, and the fence of each partition. */
export class CreateOrders1764500000002 implements MigrationInterface {
  readonly name = 'CreateOrders1764500000002';

  async up(runner: QueryRunner): Promise<void> {
    // No foreign key on the hot table: it would lock the voucher row once per order. An insert joins tb_seckill_voucher instead.
    // ux_voucher_order_active also serves the walk over the active orders of one voucher, by buyer.
    await runner.query(`
      CREATE TABLE tb_voucher_order (
        id              bigint PRIMARY KEY,
        user_id         bigint NOT NULL,
        voucher_id      bigint NOT NULL,
        pay_type        smallint NOT NULL DEFAULT 1,
        status          smallint NOT NULL DEFAULT 1 CHECK (status BETWEEN 1 AND 7),
        reason          varchar(32),
        cause           varchar(1024),
        active_order_id bigint,
        create_time     timestamptz NOT NULL DEFAULT now(),
        pay_time        timestamptz,
        use_time        timestamptz,
        refund_time     timestamptz,
        update_time     timestamptz NOT NULL DEFAULT now()
      );
      CREATE UNIQUE INDEX ux_voucher_order_active ON tb_voucher_order (voucher_id, user_id) WHERE status IN (1, 2, 3, 5);
      CREATE INDEX ix_voucher_order_inactive ON tb_voucher_order (voucher_id, id) WHERE status IN (4, 6, 7);
      CREATE INDEX ix_voucher_order_user ON tb_voucher_order (user_id, create_time, id);
      COMMENT ON COLUMN tb_voucher_order.status IS
        '1 unpaid, 2 paid, 3 used, 4 cancelled, 5 refunding, 6 refunded, 7 rejected';

      CREATE TABLE tb_order_rejection (
        order_id        bigint PRIMARY KEY,
        user_id         bigint NOT NULL,
        voucher_id      bigint NOT NULL,
        reason          varchar(32) NOT NULL,
        cause           varchar(1024),
        active_order_id bigint,
        create_time     timestamptz NOT NULL DEFAULT now()
      );
      CREATE INDEX ix_order_rejection_user ON tb_order_rejection (user_id, create_time, order_id);
      CREATE INDEX ix_order_rejection_voucher ON tb_order_rejection (voucher_id, order_id);
      COMMENT ON TABLE tb_order_rejection IS 'rejected orders whose row in tb_voucher_order was refused';

      CREATE TABLE tb_partition (
        partition_id integer PRIMARY KEY CHECK (partition_id >= 0),
        epoch_number bigint NOT NULL DEFAULT 1,
        update_time  timestamptz NOT NULL DEFAULT now()
      );
      COMMENT ON COLUMN tb_partition.epoch_number IS 'batches that were read under another number are not stored';
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE tb_partition; DROP TABLE tb_order_rejection; DROP TABLE tb_voucher_order');
  }
}
