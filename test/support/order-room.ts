import { Test, type TestingModule } from '@nestjs/testing';
import pg from 'pg';
import { ConfigModule, readSettings } from '#config';
import { Database } from '#database';
import { type NewOrder, OrderReader, OrderRepository, OrdersModule, StockLedger } from '#orders';
import { createTestDatabase, TestRedis } from './services.js';

/** The orders room on a real PostgreSQL and a real Redis, wired by its own module. `admin` is an operator's own connection. */
export interface OrderRoom {
  readonly module: TestingModule;
  readonly repository: OrderRepository;
  readonly reader: OrderReader;
  readonly ledger: StockLedger;
  readonly database: Database;
  readonly admin: pg.Pool;
  readonly url: string;
  readonly redis: TestRedis;
  /** Puts a voucher with this many units into the record. */
  readonly putVoucher: (voucherId: string, stock: number) => Promise<void>;
  readonly stockOf: (voucherId: string) => Promise<number>;
  /** Active orders of a voucher, as `user:order`, by buyer. */
  readonly rowsOf: (voucherId: string) => Promise<string[]>;
  readonly close: () => Promise<void>;
}

export async function openOrderRoom(env: Record<string, string> = {}): Promise<OrderRoom> {
  const redis = await TestRedis.start();
  const home = await createTestDatabase();
  const read = readSettings({
    REDIS_URL: redis.url,
    DATABASE_URL: home.url,
    AUTH_JWT_SECRET: 'a secret of the tests that is long enough',
    ...env,
  });
  if (!read.ok) throw new Error(read.problems.join('; '));
  const module = await Test.createTestingModule({
    imports: [ConfigModule.forRoot(read.settings), OrdersModule],
  }).compile();
  await module.init();
  const database = module.get(Database);
  await database.whenReady(20_000);
  const admin = new pg.Pool({ connectionString: home.url, max: 2 });
  return {
    module,
    repository: module.get(OrderRepository),
    reader: module.get(OrderReader),
    ledger: module.get(StockLedger),
    database,
    admin,
    url: home.url,
    redis,
    putVoucher: async (voucherId, stock) => {
      await admin.query(
        "INSERT INTO tb_voucher (id, title, pay_value, actual_value) VALUES ($1, 'Voucher', 100, 200)",
        [voucherId],
      );
      await admin.query(
        "INSERT INTO tb_seckill_voucher (voucher_id, stock, begin_time, end_time) VALUES ($1, $2, now(), now() + interval '1 day')",
        [voucherId, stock],
      );
    },
    stockOf: async (voucherId) => {
      const answer = await admin.query<{ stock: number }>(
        'SELECT stock FROM tb_seckill_voucher WHERE voucher_id = $1',
        [voucherId],
      );
      return answer.rows[0]?.stock ?? Number.NaN;
    },
    rowsOf: async (voucherId) => {
      const answer = await admin.query<{ row: string }>(
        `SELECT user_id || ':' || id AS row FROM tb_voucher_order WHERE voucher_id = $1 AND status IN (1, 2, 3, 5) ORDER BY user_id`,
        [voucherId],
      );
      return answer.rows.map(({ row }) => row);
    },
    close: async () => {
      await admin.end();
      await module.close();
      await home.destroy();
      await redis.destroy();
    },
  };
}

/** Orders of one voucher for the buyers `firstUser`, `firstUser` + 1, ...; the order of buyer u has the id `firstId` + u. */
export function ordersOf(voucherId: string, count: number, firstUser = 1, firstId = 1_000_000): NewOrder[] {
  return Array.from({ length: count }, (_, index) => ({
    orderId: String(firstId + firstUser + index),
    userId: String(firstUser + index),
    voucherId,
    acceptedAtMs: 1_764_500_000_000 + index,
  }));
}
