import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What happened to units and why, and the answers kept for repeated calls. */
export class CreateLedgerAndKeys1764500000003 implements MigrationInterface {
  readonly name = 'CreateLedgerAndKeys1764500000003';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE tb_stock_ledger (
        id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        kind         varchar(32) NOT NULL,
        voucher_id   bigint NOT NULL,
        order_id     bigint,
        before_value bigint,
        after_value  bigint,
        reason       varchar(1024) NOT NULL,
        actor        varchar(128) NOT NULL,
        create_time  timestamptz NOT NULL DEFAULT now()
      );
      CREATE INDEX ix_stock_ledger_voucher ON tb_stock_ledger (voucher_id, id);

      CREATE TABLE tb_idempotency_key (
        scope           varchar(128) NOT NULL,
        idempotency_key varchar(255) NOT NULL,
        request_hash    varchar(64) NOT NULL,
        response_status smallint,
        response_body   jsonb,
        create_time     timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (scope, idempotency_key)
      );
      CREATE INDEX ix_idempotency_key_time ON tb_idempotency_key (create_time);
      COMMENT ON COLUMN tb_idempotency_key.scope IS 'who called what: the same key of another caller or call is another key';
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE tb_idempotency_key; DROP TABLE tb_stock_ledger');
  }
}
