import { Logger, type Type } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import pg from 'pg';
import { inject } from 'vitest';
import { ConfigModule, readSettings, type Settings } from '#config';
import { Database } from '#database';
import { OrderReader, OrderRepository, StockLedger } from '#orders';
import { type RedisConnection, RedisConnections } from '#redis';
import { EpochRegister, KeySpace, OrderLog, SaleRegister } from '#sale-register';
import { StreamConsumer, StreamConsumerModule } from '#stream-consumer';
import { createTestDatabase, TestRedis } from './services.js';

type ConsumerOverrides = Partial<Settings['consumer']>;

/** One sale as both stores hold it. */
export interface SaleFacts {
  readonly rows: number;
  readonly rejected: number;
  readonly databaseStock: number;
  readonly unitsLeft: number;
  readonly marks: number;
}

/** A process's drain wing on real stores: consumers are driven by hand, purchases are made at the register. */
export class DrainFixture {
  private readonly modules: TestingModule[] = [];

  private constructor(
    readonly server: TestRedis,
    private readonly home: { url: string; destroy: () => Promise<void> },
    readonly sql: pg.Client,
    readonly settings: Settings,
    private readonly rooms: readonly Type[],
  ) {}

  /** Consumers are off unless overridden; `rooms` are further modules of every process. */
  static async start(overrides: ConsumerOverrides = {}, rooms: readonly Type[] = []): Promise<DrainFixture> {
    Logger.overrideLogger(false);
    const [server, home] = await Promise.all([TestRedis.start(), createTestDatabase()]);
    const read = readSettings({
      REDIS_URL: server.url,
      DATABASE_URL: home.url,
      AUTH_JWT_SECRET: 'x'.repeat(32),
      DB_POOL_SIZE: '4',
      CONSUMER_ENABLED: 'false',
    });
    if (!read.ok) throw new Error(read.problems.join('\n'));
    const settings = { ...read.settings, consumer: { ...read.settings.consumer, ...overrides } };
    const sql = new pg.Client({ connectionString: home.url });
    await sql.connect();
    const fixture = new DrainFixture(server, home, sql, settings, rooms);
    await fixture.process();
    await fixture.openEpoch();
    return fixture;
  }

  /** Another process on the same stores. */
  async process(overrides: ConsumerOverrides = {}): Promise<TestingModule> {
    const settings = { ...this.settings, consumer: { ...this.settings.consumer, ...overrides } };
    const module = await Test.createTestingModule({
      imports: [ConfigModule.forRoot(settings), StreamConsumerModule, ...this.rooms],
    }).compile();
    this.modules.push(module);
    await module.init();
    await module.get(Database).whenReady(20_000);
    await module.get(RedisConnections).whenReady(5_000);
    return module;
  }

  /** Ends a process as Nest does. */
  async end(module: TestingModule): Promise<void> {
    const at = this.modules.indexOf(module);
    if (at >= 0) this.modules.splice(at, 1);
    await module.close();
  }

  private get first(): TestingModule {
    const [module] = this.modules;
    if (module === undefined) throw new Error('no process is running');
    return module;
  }

  /** A provider of the first process. */
  get<T>(type: Type<T>): T {
    return this.first.get(type);
  }

  get consumer(): StreamConsumer {
    return this.first.get(StreamConsumer);
  }
  get redis(): RedisConnection {
    return this.first.get(RedisConnections).command;
  }
  get log(): OrderLog {
    return this.first.get(OrderLog);
  }
  get register(): SaleRegister {
    return this.first.get(SaleRegister);
  }
  get orders(): OrderRepository {
    return this.first.get(OrderRepository);
  }
  get reader(): OrderReader {
    return this.first.get(OrderReader);
  }
  get ledger(): StockLedger {
    return this.first.get(StockLedger);
  }
  get keys(): KeySpace {
    return this.first.get(KeySpace);
  }
  get stream(): string {
    return this.keys.stream(0);
  }
  get group(): string {
    return this.keys.group;
  }

  /** Opens the partition on this server's data history, as a finished reconciliation does. */
  async openEpoch(partition = 0): Promise<void> {
    const epochs = this.first.get(EpochRegister);
    const state = await epochs.state(partition);
    const begun = await epochs.begin(partition, 'fixture0', 'value' in state ? state.value : undefined);
    if (begun.kind !== 'BEGUN') throw new Error(`the epoch is ${begun.kind}`);
    await epochs.open(partition, begun.value, []);
  }

  /** Stores a voucher and puts it on sale. */
  async sale(voucherId: string, units: number): Promise<void> {
    await this.sql.query(
      `INSERT INTO tb_voucher (id, shop_id, title, pay_value, actual_value, type) VALUES ($1, 1, 'v', 1, 1, 1)
       ON CONFLICT DO NOTHING`,
      [voucherId],
    );
    await this.sql.query(
      `INSERT INTO tb_seckill_voucher (voucher_id, stock, units, begin_time, end_time)
       VALUES ($1, $2, $2, now() - interval '1 hour', now() + interval '1 day')`,
      [voucherId, units],
    );
    const hourMs = 3_600_000;
    const beginMs = Date.now() - hourMs;
    await this.register.publish(0, { voucherId, beginMs, endMs: beginMs + 25 * hourMs, units, unitsVersion: 1 });
  }

  /** Buys at the register, once its connections are back; throws unless accepted. Order ids are given by the caller. */
  async buy(voucherId: string, purchases: readonly { userId: string; orderId: string }[]): Promise<void> {
    await this.first.get(RedisConnections).whenReady(10_000);
    const outcomes = await this.register.admit(
      0,
      purchases.map((purchase) => ({ voucherId, ...purchase })),
      5_000,
    );
    for (const outcome of outcomes) if (outcome.kind !== 'ACCEPTED') throw new Error(JSON.stringify(outcome));
  }

  /** Hands all undelivered entries to a consumer that does nothing more, and lets it seem silent for `idleMs`. */
  async ghostReads(ghost: string, idleMs = 3_600_000): Promise<string[]> {
    await this.log.ensureGroup(0);
    const reply = (await this.redis.xreadgroup(
      'GROUP',
      this.group,
      ghost,
      'COUNT',
      100_000,
      'STREAMS',
      this.stream,
      '>',
    )) as [string, [string, string[]][]][] | null;
    const ids = (reply?.[0]?.[1] ?? []).map(([id]) => id);
    if (ids.length > 0) {
      await this.redis.xclaim(this.stream, this.group, ghost, 0, ...ids, 'IDLE', idleMs, 'JUSTID');
    }
    return ids;
  }

  /** Cuts every connection of the product to the database and refuses new ones, until `databaseBack`. */
  async databaseAway(): Promise<void> {
    const { rows } = await this.sql.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    await this.asAdmin(async (admin, name) => {
      await admin.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`);
      await admin.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND pid <> $2', [
        name,
        rows[0]?.pid,
      ]);
    });
  }

  /** Ends the outage; resolves when all processes are connected again. */
  async databaseBack(): Promise<void> {
    await this.asAdmin((admin, name) => admin.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS true`));
    for (const module of this.modules) await module.get(Database).whenReady(20_000);
  }

  private async asAdmin(work: (admin: pg.Client, name: string) => Promise<unknown>): Promise<void> {
    const admin = new pg.Client({ connectionString: inject('postgresUrl') });
    await admin.connect();
    try {
      await work(admin, new URL(this.home.url).pathname.slice(1));
    } finally {
      await admin.end();
    }
  }

  /** Has every entry of the stream delivered once more. */
  async replay(): Promise<void> {
    await this.log.ensureGroup(0);
    await this.redis.xgroup('SETID', this.stream, this.group, '0');
  }

  /** Lets all pending entries, whoever owns them, seem to be held by a silent consumer. */
  async letPendingAge(): Promise<void> {
    const rows = (await this.redis.xpending(this.stream, this.group, '-', '+', 100_000)) as [string, string][];
    for (const [id, owner] of rows) {
      await this.redis.xclaim(this.stream, this.group, owner, 0, id, 'IDLE', 3_600_000, 'JUSTID');
    }
  }

  /** Entries pending in the group. */
  async pending(): Promise<number> {
    const [count] = (await this.redis.xpending(this.stream, this.group)) as [number];
    return count;
  }

  async length(): Promise<number> {
    return this.redis.xlen(this.stream);
  }

  /** Names of the group's consumers. */
  async consumerNames(): Promise<string[]> {
    return (await this.log.stats(0)).consumers.map(({ name }) => name);
  }

  async facts(voucherId: string): Promise<SaleFacts> {
    const { rows } = await this.sql.query<{ rows: number; rejected: number; stock: number }>(
      `SELECT (SELECT count(*)::int FROM tb_voucher_order WHERE voucher_id = $1 AND status <> 7) AS rows,
              (SELECT count(*)::int FROM tb_voucher_order WHERE voucher_id = $1 AND status = 7) +
              (SELECT count(*)::int FROM tb_order_rejection WHERE voucher_id = $1) AS rejected,
              (SELECT stock FROM tb_seckill_voucher WHERE voucher_id = $1) AS stock`,
      [voucherId],
    );
    const [row] = rows;
    const reading = await this.register.readSale(0, voucherId);
    if (row === undefined || reading.kind !== 'FOUND') throw new Error(`no sale of ${voucherId}: ${reading.kind}`);
    const { unitsLeft, marks } = reading.sale;
    return { rows: row.rows, rejected: row.rejected, databaseStock: row.stock, unitsLeft, marks };
  }

  async destroy(): Promise<void> {
    for (const module of this.modules.splice(0)) await module.close();
    await this.sql.end();
    await this.server.destroy();
    await this.home.destroy();
  }
}

/** `count` purchases by different buyers, with ids from `from` on. */
export function purchases(count: number, from = 1): { userId: string; orderId: string }[] {
  return Array.from({ length: count }, (_, at) => ({
    userId: String(from + at),
    orderId: String(1_000_000 + from + at),
  }));
}
