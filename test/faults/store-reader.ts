import type { Redis } from 'ioredis';
import type { PostgresServer, RedisServer } from './store-servers.js';

const STREAM = 'stream.orders';
const GROUP = 'g1';

export interface OrderRow {
  readonly id: string;
  readonly userId: string;
  readonly status: number;
}

/** What both stores say about one voucher. */
export interface SaleState {
  readonly partition: number;
  readonly units: number;
  readonly databaseStock: number;
  /** Rows with an active status. */
  readonly active: readonly OrderRow[];
  /** Rows with a status that holds no unit, and rejections without a row. */
  readonly inactive: readonly OrderRow[];
  readonly redisStock: string | null;
  readonly redisUnits: string | null;
  /** Buyer to order id. */
  readonly marks: ReadonlyMap<string, string>;
  /** Orders of this voucher that were admitted, are not in the record, and lie in dead letters. */
  readonly deadLetters: readonly string[];
}

export interface StreamState {
  readonly length: number;
  readonly pending: number;
  /** Entries that were never handed out. */
  readonly undelivered: number;
  readonly consumers: number;
  readonly deadLetters: number;
}

const ACTIVE = new Set([1, 2, 3, 5]);

/** Reads the stores directly: this code knows the keys and tables, and nothing of the product's own code. */
export class StoreReader {
  constructor(
    private readonly redis: () => RedisServer,
    private readonly postgres: PostgresServer,
  ) {}

  async sale(voucherId: string): Promise<SaleState> {
    const [terms] = await this.postgres.query<{ partition_id: number; units: number; stock: number }>(
      'SELECT partition_id, units, stock FROM tb_seckill_voucher WHERE voucher_id = $1',
      [voucherId],
    );
    if (terms === undefined) throw new Error(`the database has no voucher ${voucherId}`);
    const partition = terms.partition_id;
    const inRedis = await this.redis().with(async (redis) => ({
      stock: await redis.get(`seckill:stock:{${partition}}:${voucherId}`),
      units: await redis.hget(`seckill:sale:{${partition}}:${voucherId}`, 'units'),
      marks: await redis.hgetall(`seckill:order:{${partition}}:${voucherId}`),
      deadLetters: await deadLettersOf(redis, partition, voucherId),
    }));
    const rows = await this.postgres.query<{ id: string; user_id: string; status: number }>(
      `SELECT id, user_id, status FROM tb_voucher_order WHERE voucher_id = $1
       UNION ALL SELECT order_id, user_id, 7 FROM tb_order_rejection WHERE voucher_id = $1`,
      [voucherId],
    );
    const marked = new Set(Object.values(inRedis.marks));
    const stored = new Set(rows.map(({ id }) => id));
    const orders = rows.map((row) => ({ id: row.id, userId: row.user_id, status: Number(row.status) }));
    return {
      partition,
      units: terms.units,
      databaseStock: terms.stock,
      active: orders.filter(({ status }) => ACTIVE.has(status)),
      inactive: orders.filter(({ status }) => !ACTIVE.has(status)),
      redisStock: inRedis.stock,
      redisUnits: inRedis.units,
      marks: new Map(Object.entries(inRedis.marks)),
      deadLetters: inRedis.deadLetters.filter((id) => marked.has(id) && !stored.has(id)),
    };
  }

  /** Who has an active order, by the record alone. */
  async buyers(voucherId: string): Promise<string[]> {
    const rows = await this.postgres.query<{ user_id: string }>(
      'SELECT user_id FROM tb_voucher_order WHERE voucher_id = $1 AND status IN (1, 2, 3, 5)',
      [voucherId],
    );
    return rows.map((row) => row.user_id);
  }

  /** Active rows above the units, over all vouchers: must be none at any moment. */
  async oversold(): Promise<{ voucherId: string; active: number; units: number }[]> {
    const rows = await this.postgres.query<{ voucher_id: string; active: string; units: number }>(
      `SELECT v.voucher_id, v.units, count(o.id) AS active FROM tb_seckill_voucher v
       JOIN tb_voucher_order o ON o.voucher_id = v.voucher_id AND o.status IN (1, 2, 3, 5)
       GROUP BY v.voucher_id HAVING count(o.id) > v.units`,
    );
    return rows.map((row) => ({ voucherId: row.voucher_id, active: Number(row.active), units: row.units }));
  }

  stream(partition: number): Promise<StreamState> {
    return this.redis().with(async (redis) => {
      const key = `${STREAM}:{${partition}}`;
      const deadLetters = await redis.xlen(`${STREAM}.dead:{${partition}}`);
      const length = await redis.xlen(key);
      if ((await redis.exists(key)) === 0) return { length, pending: 0, undelivered: 0, consumers: 0, deadLetters };
      const groups = ((await redis.call('XINFO', 'GROUPS', key)) as unknown[][]).map(asRecord);
      const group = groups.find(({ name }) => name === GROUP);
      if (group === undefined) return { length, pending: 0, undelivered: length, consumers: 0, deadLetters };
      const undelivered = await redis.xrange(key, `(${String(group['last-delivered-id'])}`, '+', 'COUNT', 10_000);
      const pending = Number(group['pending']);
      return { length, pending, undelivered: undelivered.length, consumers: Number(group['consumers']), deadLetters };
    });
  }
}

async function deadLettersOf(redis: Redis, partition: number, voucherId: string): Promise<string[]> {
  const letters = await redis.xrange(`${STREAM}.dead:{${partition}}`, '-', '+');
  return letters.flatMap(([, flat]) => {
    const letter = asRecord(flat) as Record<string, string>;
    const fields = JSON.parse(letter['fields'] ?? '{}') as { voucherId?: string; id?: string };
    return fields.voucherId === voucherId && fields.id !== undefined ? [fields.id] : [];
  });
}

function asRecord(flat: readonly unknown[]): Record<string, unknown> {
  const record: Record<string, unknown> = {};
  for (let at = 0; at + 1 < flat.length; at += 2) record[String(flat[at])] = flat[at + 1];
  return record;
}
