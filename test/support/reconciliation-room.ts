import { Logger, type Type } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import pg from 'pg';
import { ConfigModule, readSettings, type Settings } from '#config';
import { Database } from '#database';
import { OrderRepository, StockLedger } from '#orders';
import {
  ReconciliationModule,
  ReconciliationService,
  ReconciliationWatchModule,
  RebuildService,
} from '#reconciliation';
import { type RedisConnection, RedisConnections } from '#redis';
import { EpochRegister, KeySpace, OrderLog, RebuildRegister, SaleRegister } from '#sale-register';
import { StreamConsumer, StreamConsumerModule } from '#stream-consumer';
import { createTestDatabase, TestRedis } from './services.js';

export interface Purchase {
  readonly userId: string;
  readonly orderId: string;
}

/** A sale in both stores, as a quiet system must agree on it. */
export interface SaleInBothStores {
  readonly units: number;
  readonly rows: number;
  readonly databaseStock: number;
  readonly unitsLeft: number;
  /** Marks in Redis and active rows in the database, as `user:order`. */
  readonly marks: readonly string[];
  readonly orders: readonly string[];
}

/** Reconciliation and consumer on real stores, driven by hand; purchases are made at the register. */
export class ReconciliationRoom {
  private readonly modules: TestingModule[] = [];

  private constructor(
    readonly server: TestRedis,
    readonly home: { url: string; destroy: () => Promise<void> },
    readonly sql: pg.Client,
    readonly settings: Settings,
  ) {}

  static async start(env: Record<string, string> = {}, redisArgs: string[] = []): Promise<ReconciliationRoom> {
    Logger.overrideLogger(false);
    const [server, home] = await Promise.all([TestRedis.start(redisArgs), createTestDatabase()]);
    const read = readSettings(
      { REDIS_URL: server.url, DATABASE_URL: home.url, CONSUMER_ENABLED: 'false', DB_POOL_SIZE: '6', ...env },
      { authRequired: false },
    );
    if (!read.ok) throw new Error(read.problems.join('\n'));
    const sql = new pg.Client({ connectionString: home.url });
    await sql.connect();
    const room = new ReconciliationRoom(server, home, sql, read.settings);
    await room.process();
    return room;
  }

  /** Another process on the same stores. `watching` adds EpochWatch and the periodic job, which start by themselves. */
  async process({ watching = false, waits = true, settings = this.settings } = {}): Promise<TestingModule> {
    const imports = [StreamConsumerModule, watching ? ReconciliationWatchModule : ReconciliationModule];
    const module = await Test.createTestingModule({
      imports: [ConfigModule.forRoot(settings), ...imports],
    }).compile();
    this.modules.push(module);
    await module.init();
    if (waits) {
      await module.get(Database).whenReady(20_000);
      await module.get(RedisConnections).whenReady(5_000);
    }
    return module;
  }

  async end(module: TestingModule): Promise<void> {
    const at = this.modules.indexOf(module);
    if (at >= 0) this.modules.splice(at, 1);
    await module.close();
  }

  get<T>(type: Type<T>): T {
    const [module] = this.modules;
    if (module === undefined) throw new Error('no process is running');
    return module.get(type, { strict: false });
  }

  get reconciliation(): ReconciliationService {
    return this.get(ReconciliationService);
  }
  get rebuilds(): RebuildService {
    return this.get(RebuildService);
  }
  get epochs(): EpochRegister {
    return this.get(EpochRegister);
  }
  get register(): SaleRegister {
    return this.get(SaleRegister);
  }
  get repairs(): RebuildRegister {
    return this.get(RebuildRegister);
  }
  get orders(): OrderRepository {
    return this.get(OrderRepository);
  }
  get log(): OrderLog {
    return this.get(OrderLog);
  }
  get ledger(): StockLedger {
    return this.get(StockLedger);
  }
  get keys(): KeySpace {
    return this.get(KeySpace);
  }
  get consumer(): StreamConsumer {
    return this.get(StreamConsumer);
  }
  get redis(): RedisConnection {
    return this.get(RedisConnections).command;
  }

  /** Stores a voucher; a rebuild or `publish` puts it on sale. Times relative to now. */
  async voucher(voucherId: string, units: number, window = { beginMs: -3_600_000, endMs: 86_400_000 }): Promise<void> {
    await this.sql.query(
      `INSERT INTO tb_voucher (id, shop_id, title, pay_value, actual_value, type) VALUES ($1, 1, 'v', 1, 1, 1)`,
      [voucherId],
    );
    const now = Date.now();
    await this.sql.query(
      `INSERT INTO tb_seckill_voucher (voucher_id, stock, begin_time, end_time) VALUES ($1, $2, $3, $4)`,
      [voucherId, units, new Date(now + window.beginMs), new Date(now + window.endMs)],
    );
  }

  /** Stores vouchers with these units and opens the partition. */
  async onSale(sales: Readonly<Record<string, number>>): Promise<void> {
    for (const [voucherId, units] of Object.entries(sales)) await this.voucher(voucherId, units);
    const report = await this.rebuilds.rebuildPartition(0);
    if (report?.outcome !== 'OPENED') throw new Error(`not opened: ${report?.outcome}`);
  }

  /** Buys at the register; answers the kinds of the outcomes. */
  async buy(voucherId: string, purchases: readonly Purchase[]): Promise<string[]> {
    const batch = purchases.map((purchase) => ({ voucherId, ...purchase }));
    return (await this.register.admit(0, batch, 5_000)).map(({ kind }) => kind);
  }

  /** Lets the consumer store what waits. */
  async drain(): Promise<void> {
    await this.consumer.runOnce(0);
  }

  /** Puts an order row into the database as if a consumer had stored it. */
  async storeOrder(voucherId: string, { userId, orderId }: Purchase, status = 1): Promise<void> {
    await this.sql.query('INSERT INTO tb_voucher_order (id, user_id, voucher_id, status) VALUES ($1, $2, $3, $4)', [
      orderId,
      userId,
      voucherId,
      status,
    ]);
    if (status !== 1) return;
    await this.sql.query('UPDATE tb_seckill_voucher SET stock = stock - 1 WHERE voucher_id = $1', [voucherId]);
  }

  async inBothStores(voucherId: string): Promise<SaleInBothStores> {
    const { rows } = await this.sql.query<{ units: number; stock: number; orders: string[] | null }>(
      `SELECT units, stock, (SELECT array_agg(user_id || ':' || id ORDER BY user_id) FROM tb_voucher_order o
         WHERE o.voucher_id = v.voucher_id AND status IN (1, 2, 3, 5)) AS orders
       FROM tb_seckill_voucher v WHERE voucher_id = $1`,
      [voucherId],
    );
    const row = rows[0]!;
    const orders = row.orders ?? [];
    const marks = Object.entries(await this.redis.hgetall(this.keys.marks(0, voucherId)));
    return {
      units: row.units,
      rows: orders.length,
      databaseStock: row.stock,
      unitsLeft: Number(await this.redis.get(this.keys.stock(0, voucherId))),
      marks: marks.sort(([a], [b]) => Number(a) - Number(b)).map(([user, order]) => `${user}:${order}`),
      orders,
    };
  }

  /** The kinds of what an inspection finds now. */
  async findings(): Promise<string[]> {
    return (await this.reconciliation.inspect({ pauseMs: 10 })).findings.map(({ kind }) => kind);
  }

  async destroy(): Promise<void> {
    for (const module of this.modules.splice(0)) await module.close();
    await this.sql.end();
    await this.server.destroy();
    await this.home.destroy();
  }
}

/** `count` purchases by different buyers, from the buyer `from` on. */
export function purchases(count: number, from = 1): Purchase[] {
  return Array.from({ length: count }, (_, at) => ({
    userId: String(from + at),
    orderId: String(1_000_000 + from + at),
  }));
}

/** Asserts, as a list of what is wrong, that both stores agree on a quiet sale. */
export function disagreements(sale: SaleInBothStores): string[] {
  const wrong: string[] = [];
  if (sale.rows > sale.units) wrong.push(`${sale.rows} rows for ${sale.units} units`);
  if (sale.databaseStock !== sale.units - sale.rows) wrong.push(`database stock ${sale.databaseStock}`);
  if (sale.unitsLeft + sale.marks.length !== sale.units)
    wrong.push(`stock ${sale.unitsLeft}, marks ${sale.marks.length}`);
  if (sale.marks.join() !== sale.orders.join())
    wrong.push(`marks ${sale.marks.join()} against orders ${sale.orders.join()}`);
  return wrong;
}
