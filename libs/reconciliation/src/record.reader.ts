import { Injectable } from '@nestjs/common';
import { Database } from '#database';
import { isCanonicalId } from '#order-stream';
import { OrderReader } from '#orders';
import type { OrderStanding } from './findings.js';
import type { RecordFacts } from './rules.js';

/** An order as a mark or an entry names it. */
export interface NamedOrder {
  readonly userId: string;
  readonly orderId: string;
}

/** The greatest page that one statement asks for or answers. */
export const PAGE_SIZE = 1_000;

interface FactsRow {
  readonly units: number;
  readonly units_version: string;
  readonly stock: number;
  readonly begin_time: Date;
  readonly end_time: Date;
  readonly active_orders: string;
}

const ACTIVE = 'status IN (1, 2, 3, 5)';

// OFFSET 0 keeps the look-ups apart, one by the primary key for each order: joined, a planner with old statistics (after a restore, say) would read
// the whole table for each page.
const STANDINGS = {
  name: 'order_standings',
  text: `SELECT CASE
      WHEN coalesce(o.id, r.order_id) IS NULL THEN 'UNKNOWN'
      WHEN coalesce(o.user_id, r.user_id) <> n.user_id OR coalesce(o.voucher_id, r.voucher_id) <> $1 THEN 'FOREIGN'
      WHEN o.${ACTIVE} THEN 'ACTIVE'
      ELSE 'SETTLED' END AS standing
    FROM unnest($2::bigint[], $3::bigint[]) WITH ORDINALITY AS n (user_id, order_id, place)
    LEFT JOIN LATERAL (
      SELECT id, user_id, voucher_id, status FROM tb_voucher_order WHERE id = n.order_id OFFSET 0
    ) o ON true
    LEFT JOIN LATERAL (
      SELECT order_id, user_id, voucher_id FROM tb_order_rejection WHERE order_id = n.order_id OFFSET 0
    ) r ON true
    ORDER BY n.place`,
};

/**
 * What the reconciliation reads of the record: pages bounded by PAGE_SIZE, one statement each, so each answer is of one instant.
 * @throws DatabaseUnavailableError while the database is away (every method).
 */
@Injectable()
export class RecordReader {
  constructor(
    private readonly database: Database,
    private readonly orders: OrderReader,
  ) {}

  /** Every partition that the record names. */
  async partitions(): Promise<number[]> {
    const rows = await this.database.query<{ partition_id: number }>(
      'SELECT partition_id FROM tb_partition UNION SELECT partition_id FROM tb_seckill_voucher ORDER BY 1',
    );
    return rows.map((row) => row.partition_id);
  }

  /** The numbers of one sale with the count of its active orders, all of one instant. */
  async facts(voucherId: string): Promise<RecordFacts | undefined> {
    const rows = await this.database.query<FactsRow>(
      `SELECT units, units_version, stock, begin_time, end_time,
         (SELECT count(*) FROM tb_voucher_order o WHERE o.voucher_id = v.voucher_id AND ${ACTIVE}) AS active_orders
       FROM tb_seckill_voucher v WHERE voucher_id = $1`,
      [voucherId],
    );
    const row = rows[0];
    if (row === undefined) return undefined;
    return {
      units: row.units,
      unitsVersion: Number(row.units_version),
      stock: row.stock,
      activeOrders: Number(row.active_orders),
      beginMs: row.begin_time.getTime(),
      endMs: row.end_time.getTime(),
    };
  }

  /** What each named order is to its buyer and voucher; the answers stand in the order of the question. At most PAGE_SIZE of them. */
  async standings(voucherId: string, named: readonly NamedOrder[]): Promise<OrderStanding[]> {
    const known = named.filter(({ userId, orderId }) => isCanonicalId(userId) && isCanonicalId(orderId));
    if (known.length === 0) return named.map(() => 'FOREIGN');
    const rows = await this.database.query<{ standing: OrderStanding }>(STANDINGS, [
      voucherId,
      known.map((order) => order.userId),
      known.map((order) => order.orderId),
    ]);
    const standings = new Map(known.map((order, index) => [order, rows[index]?.standing ?? 'UNKNOWN']));
    // What is no id at all cannot be anybody's order.
    return named.map((order) => standings.get(order) ?? 'FOREIGN');
  }

  /** All active orders of a voucher by buyer, in pieces of at most PAGE_SIZE. One that stands the whole time comes exactly once. */
  async *walkActiveOrders(voucherId: string): AsyncGenerator<readonly NamedOrder[], void, undefined> {
    let after = '0';
    for (;;) {
      const page = await this.orders.activeOrders(voucherId, after, PAGE_SIZE);
      const last = page.at(-1);
      if (last === undefined) return;
      yield page;
      if (page.length < PAGE_SIZE) return;
      after = last.userId;
    }
  }

  /** The active orders of these buyers (at most PAGE_SIZE) for the voucher, by buyer. */
  async activeOrdersOf(voucherId: string, userIds: readonly string[]): Promise<Map<string, string>> {
    const known = userIds.filter(isCanonicalId);
    if (known.length === 0) return new Map();
    const rows = await this.database.query<{ id: string; user_id: string }>(
      // One look-up by the index for each buyer, as above.
      `SELECT o.id, o.user_id FROM unnest($2::bigint[]) AS n (user_id) CROSS JOIN LATERAL (
         SELECT id, user_id FROM tb_voucher_order WHERE voucher_id = $1 AND user_id = n.user_id AND ${ACTIVE} OFFSET 0
       ) o`,
      [voucherId, known],
    );
    return new Map(rows.map((row) => [row.user_id, row.id]));
  }

  /**
   * Which history of data the database is on: changes when an older replica was promoted or a backup restored. Undefined where it cannot
   * be told (no right, a standby).
   */
  async timeline(): Promise<string | undefined> {
    const rows = await this.database.query<{ timeline: string | null }>(
      `SELECT CASE WHEN pg_is_in_recovery() THEN NULL ELSE substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) END AS timeline`,
    );
    return rows[0]?.timeline ?? undefined;
  }
}
