import pg from 'pg';
import { DataSource } from 'typeorm';
import type { ConnectionPolicy } from './connection-policy.js';
import { ownConnection, sessionConfig } from './data-source-options.js';
import { DatabaseUnavailableError } from './database-error.js';
import { MIGRATIONS } from './migrations/index.js';

/** Table in which TypeORM notes the migrations that were run. */
export const MIGRATIONS_TABLE = 'tb_schema_migration';

/** Key of the session-level advisory lock under which one instance at a time sets up the schema. */
const MIGRATION_LOCK = 7_315_001;
const LOCK_LIMIT_MS = 60_000;
const LOCK_PAUSE_MS = 100;
const MIGRATION_STATEMENT_LIMIT_MS = 600_000;

/**
 * Brings the schema up to date; answers the names of the migrations that this call ran. Any number of instances may call it at once on an empty
 * database. The lock is held by a connection of its own and ends with it, so a killed instance blocks nobody.
 * @throws DatabaseUnavailableError where another instance keeps the lock longer than a minute; the driver's error otherwise.
 */
export async function migrate(url: string, policy: ConnectionPolicy, signal?: AbortSignal): Promise<string[]> {
  const client = ownConnection(url, policy);
  const abort = (): void => client.cut(new Error('stopped while setting up the schema'));
  signal?.addEventListener('abort', abort);
  try {
    await client.connect();
    if (!(await isPending(client))) return [];
    await acquireLock(client);
    return await runPending(url, policy);
  } finally {
    signal?.removeEventListener('abort', abort);
    await client.end().catch(() => undefined);
  }
}

async function isPending(client: pg.Client): Promise<boolean> {
  const table = await client.query<{ present: boolean }>('SELECT to_regclass($1) IS NOT NULL AS present', [
    MIGRATIONS_TABLE,
  ]);
  if (table.rows[0]?.present !== true) return true;
  const done = await client.query<{ name: string }>(`SELECT name FROM ${MIGRATIONS_TABLE}`);
  const names = new Set(done.rows.map((row) => row.name));
  return MIGRATIONS.some((migration) => !names.has(migration.name));
}

async function acquireLock(client: pg.Client): Promise<void> {
  const deadline = Date.now() + LOCK_LIMIT_MS;
  for (;;) {
    const answer = await client.query<{ held: boolean }>('SELECT pg_try_advisory_lock($1) AS held', [MIGRATION_LOCK]);
    if (answer.rows[0]?.held === true) return;
    if (Date.now() > deadline) {
      throw new DatabaseUnavailableError(`another instance has been setting up the schema for ${LOCK_LIMIT_MS} ms`);
    }
    await new Promise((resolve) => setTimeout(resolve, LOCK_PAUSE_MS));
  }
}

async function runPending(url: string, policy: ConnectionPolicy): Promise<string[]> {
  const dataSource = new DataSource({
    type: 'postgres',
    driver: pg,
    installExtensions: false,
    migrations: MIGRATIONS,
    migrationsTableName: MIGRATIONS_TABLE,
    migrationsTransactionMode: 'each',
    poolSize: 1,
    extra: { ...sessionConfig(url, policy), statement_timeout: MIGRATION_STATEMENT_LIMIT_MS },
    poolErrorHandler: () => undefined,
  });
  await dataSource.initialize();
  try {
    return (await dataSource.runMigrations()).map((migration) => migration.name);
  } finally {
    await dataSource.destroy();
  }
}
