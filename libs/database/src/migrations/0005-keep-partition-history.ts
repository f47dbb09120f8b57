import type { MigrationInterface, QueryRunner } from 'typeorm';

/** On which data history of Redis each partition was last rebuilt: a former Redis that returns unchanged must not go on selling. */
export class KeepPartitionHistory1764500000005 implements MigrationInterface {
  readonly name = 'KeepPartitionHistory1764500000005';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE tb_partition ADD COLUMN history varchar(64);
      COMMENT ON COLUMN tb_partition.history IS 'master_replid of the Redis for which the partition was last rebuilt; null: not known';
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE tb_partition DROP COLUMN history');
  }
}
