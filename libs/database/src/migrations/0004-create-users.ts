import type { MigrationInterface, QueryRunner } from 'typeorm';

/** People who log in with their phone, for hmdp's clients. Other buyers are known by their token alone and have no row. */
export class CreateUsers1764500000004 implements MigrationInterface {
  readonly name = 'CreateUsers1764500000004';

  async up(runner: QueryRunner): Promise<void> {
    // As with vouchers: the id's default steps over ids that were imported.
    await runner.query(`
      CREATE SEQUENCE sq_user_id AS bigint;
      CREATE FUNCTION next_user_id() RETURNS bigint LANGUAGE plpgsql AS $$
      DECLARE
        candidate bigint;
      BEGIN
        LOOP
          candidate := nextval('sq_user_id');
          EXIT WHEN NOT EXISTS (SELECT FROM tb_user WHERE id = candidate);
        END LOOP;
        RETURN candidate;
      END $$;

      CREATE TABLE tb_user (
        id          bigint PRIMARY KEY DEFAULT next_user_id() CHECK (id > 0),
        phone       varchar(11) NOT NULL CONSTRAINT uq_user_phone UNIQUE,
        password    varchar(128) NOT NULL DEFAULT '',
        nick_name   varchar(32) NOT NULL DEFAULT '',
        icon        varchar(255) NOT NULL DEFAULT '',
        create_time timestamptz NOT NULL DEFAULT now(),
        update_time timestamptz NOT NULL DEFAULT now()
      );
      COMMENT ON COLUMN tb_user.password IS 'unused: login is by code';
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE tb_user; DROP FUNCTION next_user_id; DROP SEQUENCE sq_user_id');
  }
}
