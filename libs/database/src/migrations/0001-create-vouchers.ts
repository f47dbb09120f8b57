import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Vouchers, and what is offered of them in a flash sale. All columns that a person would not type have defaults. */
export class CreateVouchers1764500000001 implements MigrationInterface {
  readonly name = 'CreateVouchers1764500000001';

  async up(runner: QueryRunner): Promise<void> {
    // The id's default steps over ids that were given by hand: a plain identity would collide with them.
    await runner.query(`
      CREATE SEQUENCE sq_voucher_id AS bigint;
      CREATE FUNCTION next_voucher_id() RETURNS bigint LANGUAGE plpgsql AS $$
      DECLARE
        candidate bigint;
      BEGIN
        LOOP
          candidate := nextval('sq_voucher_id');
          EXIT WHEN NOT EXISTS (SELECT FROM tb_voucher WHERE id = candidate);
        END LOOP;
        RETURN candidate;
      END $$;

      CREATE TABLE tb_voucher (
        id           bigint PRIMARY KEY DEFAULT next_voucher_id() CHECK (id > 0),
        shop_id      bigint,
        title        varchar(255) NOT NULL,
        sub_title    varchar(255),
        rules        varchar(1024),
        pay_value    bigint NOT NULL CHECK (pay_value >= 0),
        actual_value bigint NOT NULL CHECK (actual_value >= 0),
        type         smallint NOT NULL DEFAULT 0,
        status       smallint NOT NULL DEFAULT 1,
        create_time  timestamptz NOT NULL DEFAULT now(),
        update_time  timestamptz NOT NULL DEFAULT now()
      );
      CREATE INDEX ix_voucher_shop ON tb_voucher (shop_id, id);
      COMMENT ON COLUMN tb_voucher.type IS '0 ordinary, 1 flash sale';
      COMMENT ON COLUMN tb_voucher.status IS '1 on the shelf, 2 off the shelf, 3 expired';

      CREATE TABLE tb_seckill_voucher (
        voucher_id    bigint PRIMARY KEY REFERENCES tb_voucher (id) ON DELETE CASCADE,
        stock         integer NOT NULL CHECK (stock >= 0),
        units         integer NOT NULL CHECK (units >= 0),
        units_version bigint NOT NULL DEFAULT 1,
        partition_id  integer NOT NULL DEFAULT 0 CHECK (partition_id >= 0),
        begin_time    timestamptz NOT NULL,
        end_time      timestamptz NOT NULL,
        create_time   timestamptz NOT NULL DEFAULT now(),
        update_time   timestamptz NOT NULL DEFAULT now()
      ) WITH (fillfactor = 50);
      CREATE INDEX ix_seckill_voucher_partition ON tb_seckill_voucher (partition_id, end_time);
      COMMENT ON COLUMN tb_seckill_voucher.stock IS 'units without an active order';
      COMMENT ON COLUMN tb_seckill_voucher.units IS 'units offered; the stock at the insert where not given';
      COMMENT ON COLUMN tb_seckill_voucher.units_version IS 'raised by every change of units';

      CREATE FUNCTION seckill_voucher_units() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        NEW.units := coalesce(NEW.units, NEW.stock);
        RETURN NEW;
      END $$;
      CREATE TRIGGER seckill_voucher_units BEFORE INSERT ON tb_seckill_voucher
        FOR EACH ROW EXECUTE FUNCTION seckill_voucher_units();
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE tb_seckill_voucher; DROP FUNCTION seckill_voucher_units');
    await runner.query('DROP TABLE tb_voucher; DROP FUNCTION next_voucher_id; DROP SEQUENCE sq_voucher_id');
  }
}
