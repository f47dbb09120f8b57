import { Injectable } from '@nestjs/common';
import { Database } from '#database';
import { arrayLiteral } from './order-arrays.js';
import { decodeCursor, encodeCursor } from './order-cursor.js';
import { ACTIVE, INACTIVE } from './order-statements.js';
import { ORDER_STATUS, type OrderStatus, type OrderView } from './order.types.js';

/** An order as the reconciliation compares it with marks: who holds which order, in which state. */
export interface OrderKey {
  readonly orderId: string;
  readonly userId: string;
  readonly voucherId: string;
  readonly status: OrderStatus;
}

/** One page of a buyer's orders. INVALID_CURSOR: the text was not made by us. */
export type OrderPage =
  | { readonly kind: 'PAGE'; readonly items: readonly OrderView[]; readonly nextCursor?: string }
  | { readonly kind: 'INVALID_CURSOR' };

interface OrderRow {
  readonly id: string;
  readonly user_id: string;
  readonly voucher_id: string;
  readonly status: number;
  readonly reason: string | null;
  readonly pay_type: number | null;
  readonly create_time: Date;
  readonly pay_time: Date | null;
  readonly use_time: Date | null;
  readonly refund_time: Date | null;
  readonly update_time: Date;
}

const LONGEST_PAGE = 1_000;
const USER_PAGE = 20;
const LONGEST_USER_PAGE = 100;

const ORDER_COLUMNS =
  'id, user_id, voucher_id, status, reason, pay_type, create_time, pay_time, use_time, refund_time, update_time';
/** Rejections without an order row, in the shape of orders. */
const REJECTION_COLUMNS = `order_id, user_id, voucher_id, 7::smallint, reason, NULL::smallint, create_time, NULL::timestamptz,
  NULL::timestamptz, NULL::timestamptz, create_time`;

/** Both tables, filtered by the same conditions; `{id}` stands for the order's id. */
function fromBoth(where: string, end = ''): string {
  return `
    (SELECT ${ORDER_COLUMNS} FROM tb_voucher_order WHERE ${where.replaceAll('{id}', 'id')} ${end.replaceAll('{id}', 'id')})
    UNION ALL
    (SELECT ${REJECTION_COLUMNS} FROM tb_order_rejection WHERE ${where.replaceAll('{id}', 'order_id')} ${end.replaceAll('{id}', 'order_id')})`;
}

const FIND_BY_IDS = { name: 'find_orders', text: fromBoth('{id} = ANY ($1::bigint[])') };

const OF_VOUCHER = {
  name: 'list_orders_of_voucher',
  text: `${fromBoth('voucher_id = $1 AND user_id = $2', 'ORDER BY create_time DESC, {id} DESC LIMIT $3')}
    ORDER BY create_time DESC, id DESC LIMIT $3`,
};

// The instant is compared in whole microseconds: a Date would round it, and rows of one millisecond would be skipped.
const INSTANT = "(timestamptz 'epoch' + $2::bigint * interval '1 microsecond')";
const OF_USER = {
  name: 'list_orders_of_user',
  text: `SELECT o.*, (extract(epoch FROM o.create_time) * 1000000)::bigint AS create_us FROM (${fromBoth(
    `user_id = $1 AND (create_time, {id}) < (${INSTANT}, $3::bigint)`,
    'ORDER BY create_time DESC, {id} DESC LIMIT $4',
  )}) o ORDER BY create_time DESC, id DESC LIMIT $4`,
};

const ACTIVE_OF_VOUCHER = {
  name: 'active_orders_of_voucher',
  text: `SELECT id, user_id, status FROM tb_voucher_order
    WHERE voucher_id = $1 AND user_id > $2 AND ${ACTIVE} ORDER BY user_id LIMIT $3`,
};

const INACTIVE_OF_VOUCHER = {
  name: 'inactive_orders_of_voucher',
  text: `SELECT id, user_id, status FROM (
      (SELECT id, user_id, status FROM tb_voucher_order
        WHERE voucher_id = $1 AND id > $2 AND ${INACTIVE} ORDER BY id LIMIT $3)
      UNION ALL
      (SELECT order_id, user_id, 7::smallint FROM tb_order_rejection
        WHERE voucher_id = $1 AND order_id > $2 ORDER BY order_id LIMIT $3)
    ) o ORDER BY id LIMIT $3`,
};

/** Reads orders and rejections. Every method throws DatabaseUnavailableError while the database is away. */
@Injectable()
export class OrderReader {
  constructor(private readonly database: Database) {}

  /** The order, or its rejection, with this id. */
  async findOrder(orderId: string): Promise<OrderView | undefined> {
    return (await this.findByIds([orderId])).get(orderId);
  }

  /** Those of the orders that are recorded, by id. At most 1,000 ids. */
  async findByIds(orderIds: readonly string[]): Promise<Map<string, OrderView>> {
    if (orderIds.length === 0) return new Map();
    if (orderIds.length > LONGEST_PAGE) throw new TypeError(`at most ${LONGEST_PAGE} ids at once`);
    const rows = await this.database.query<OrderRow>(FIND_BY_IDS, [arrayLiteral(orderIds)]);
    return new Map(rows.map((row) => [row.id, toView(row)]));
  }

  /** A buyer's orders of one voucher, newest first, at most 100. */
  async listOrdersOfVoucher(voucherId: string, userId: string): Promise<OrderView[]> {
    const rows = await this.database.query<OrderRow>(OF_VOUCHER, [voucherId, userId, LONGEST_USER_PAGE]);
    return rows.map(toView);
  }

  /** A buyer's orders, newest first, behind `cursor` (the `nextCursor` of the page before). `limit` 1..100. */
  async listOrdersOfUser(userId: string, cursor?: string, limit = USER_PAGE): Promise<OrderPage> {
    const start = decodeCursor(cursor);
    if (start === undefined) return { kind: 'INVALID_CURSOR' };
    const size = Math.min(Math.max(limit, 1), LONGEST_USER_PAGE);
    const rows = await this.database.query<OrderRow & { create_us: string }>(OF_USER, [
      userId,
      start.createUs,
      start.orderId,
      size + 1,
    ]);
    const items = rows.slice(0, size).map(toView);
    const last = rows[size - 1];
    if (rows.length <= size || last === undefined) return { kind: 'PAGE', items };
    return { kind: 'PAGE', items, nextCursor: encodeCursor({ createUs: last.create_us, orderId: last.id }) };
  }

  /** Active orders of one voucher, by buyer, behind the buyer `afterUserId`. A page shorter than `limit` (1..1,000) is the last. */
  async activeOrders(voucherId: string, afterUserId = '0', limit = LONGEST_PAGE): Promise<OrderKey[]> {
    return this.keys(ACTIVE_OF_VOUCHER, voucherId, afterUserId, limit);
  }

  /** Cancelled, refunded and rejected orders of one voucher, by order id, behind `afterOrderId`. Pages as in `activeOrders`. */
  async inactiveOrders(voucherId: string, afterOrderId = '0', limit = LONGEST_PAGE): Promise<OrderKey[]> {
    return this.keys(INACTIVE_OF_VOUCHER, voucherId, afterOrderId, limit);
  }

  private async keys(
    statement: { name: string; text: string },
    voucherId: string,
    after: string,
    limit: number,
  ): Promise<OrderKey[]> {
    const size = Math.min(Math.max(limit, 1), LONGEST_PAGE);
    const rows = await this.database.query<Pick<OrderRow, 'id' | 'user_id' | 'status'>>(statement, [
      voucherId,
      after,
      size,
    ]);
    return rows.map((row) => ({ orderId: row.id, userId: row.user_id, voucherId, status: statusName(row.status) }));
  }
}

const STATUS_NAMES = new Map<number, OrderStatus>(
  Object.entries(ORDER_STATUS).map(([name, number]) => [number, name as OrderStatus]),
);

function statusName(status: number): OrderStatus {
  const name = STATUS_NAMES.get(status);
  if (name === undefined) throw new Error(`no order has the status ${status}`);
  return name;
}

function toView(row: OrderRow): OrderView {
  const status = statusName(row.status);
  return {
    orderId: row.id,
    voucherId: row.voucher_id,
    userId: row.user_id,
    status,
    ...(status === 'REJECTED' ? { reason: row.reason ?? 'REFUSED_BY_DATABASE' } : {}),
    ...(row.pay_type === null || status === 'REJECTED' ? {} : { payType: row.pay_type }),
    createTime: row.create_time.toISOString(),
    ...time('payTime', row.pay_time),
    ...time('useTime', row.use_time),
    ...time('refundTime', row.refund_time),
    updateTime: row.update_time.toISOString(),
  };
}

function time<Name extends string>(name: Name, at: Date | null): { [K in Name]?: string } {
  return at === null ? {} : ({ [name]: at.toISOString() } as { [K in Name]?: string });
}
