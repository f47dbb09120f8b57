import type { Statement } from '#database';

/** Orders that take a unit: all but cancelled, refunded and rejected ones. The words of the partial indexes, so that they are used. */
export const ACTIVE = 'status IN (1, 2, 3, 5)';
export const INACTIVE = 'status IN (4, 6, 7)';

/**
 * The whole of a batch. $1 partition, $2 epoch number, then the orders as arrays: $3 ids, $4 buyers, $5 vouchers, $6 acceptance (Unix ms).
 * - Under another epoch number, or for an unknown voucher or a recorded rejection, nothing is inserted. NOT IN and IS TRUE keep these look-ups
 *   hashed: as joins they become one index probe per order, because the planner takes an array parameter for ten rows.
 * - Inserts and row locks go in one order in all processes, so batches wait for each other but never in a ring.
 * - `locked` waits for the rows of the stock and then sees their latest version; `cut` takes the units where there are enough.
 */
function storeOrders(onConflict: string): string {
  return `
    WITH inserted AS (
      INSERT INTO tb_voucher_order (id, user_id, voucher_id, create_time)
      SELECT o.id, o.user_id, o.voucher_id, to_timestamp(o.accepted_ms / 1000)
      FROM unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::float8[]) AS o (id, user_id, voucher_id, accepted_ms)
      WHERE (SELECT epoch_number FROM tb_partition WHERE partition_id = $1) = $2::bigint
        AND (o.voucher_id IN (SELECT voucher_id FROM tb_seckill_voucher WHERE voucher_id = ANY ($5::bigint[]))) IS TRUE
        AND o.id NOT IN (SELECT order_id FROM tb_order_rejection WHERE order_id = ANY ($3::bigint[]))
      ORDER BY o.voucher_id, o.user_id, o.id
      ${onConflict}
      RETURNING id, voucher_id
    ), sold AS (
      SELECT voucher_id, count(*)::integer AS units FROM inserted GROUP BY voucher_id
    ), locked AS (
      SELECT v.voucher_id, s.units FROM tb_seckill_voucher v JOIN sold s ON s.voucher_id = v.voucher_id
      ORDER BY v.voucher_id FOR NO KEY UPDATE OF v
    ), cut AS (
      UPDATE tb_seckill_voucher v SET stock = v.stock - l.units, update_time = now()
      FROM locked l WHERE v.voucher_id = l.voucher_id AND v.stock >= l.units
      RETURNING v.voucher_id
    ), total AS (
      SELECT coalesce(sum(units), 0)::integer AS stored FROM sold
    )
    SELECT (SELECT epoch_number FROM tb_partition WHERE partition_id = $1) AS epoch_number,
      stored,
      ARRAY(SELECT voucher_id FROM sold EXCEPT SELECT voucher_id FROM cut)::text[] AS short_vouchers,
      CASE WHEN stored < cardinality($3::bigint[]) THEN ARRAY(SELECT id FROM inserted)::text[] END AS stored_ids
    FROM total`;
}

/**
 * For orders that may stand in the table already. ON CONFLICT has no target: also a row outside the partial unique index (a rejected one) must be
 * met without an error.
 */
export const STORE_ORDERS: Statement = { name: 'store_orders', text: storeOrders('ON CONFLICT DO NOTHING') };

/** For orders that are probably all new: raises unique_violation where one is not. ON CONFLICT would cost as much as the insert itself. */
export const STORE_NEW_ORDERS: Statement = { name: 'store_new_orders', text: storeOrders('') };

export interface StoreOrdersRow {
  readonly epoch_number: string | null;
  readonly stored: number;
  readonly short_vouchers: string[];
  /** Null where all were stored. */
  readonly stored_ids: string[] | null;
}

/** What is known of each order: $1 ids, $2 buyers, $3 vouchers. One answer per order; `position` counts from 1. */
export const LOOK_UP_ORDERS: Statement = {
  name: 'look_up_orders',
  text: `
    SELECT m.position::integer,
      o.user_id AS order_user_id, o.voucher_id AS order_voucher_id, o.status, o.reason, o.active_order_id,
      r.user_id AS rejected_user_id, r.voucher_id AS rejected_voucher_id, r.reason AS rejected_reason,
      r.active_order_id AS rejected_active_order_id,
      v.voucher_id IS NOT NULL AS voucher_known,
      a.id AS other_order_id
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS m (id, user_id, voucher_id, position)
    LEFT JOIN tb_voucher_order o ON o.id = m.id
    LEFT JOIN tb_order_rejection r ON r.order_id = m.id
    LEFT JOIN tb_seckill_voucher v ON v.voucher_id = m.voucher_id
    LEFT JOIN tb_voucher_order a ON a.voucher_id = m.voucher_id AND a.user_id = m.user_id AND a.${ACTIVE} AND a.id <> m.id
    ORDER BY m.position`,
};

export interface LookUpRow {
  readonly position: number;
  readonly order_user_id: string | null;
  readonly order_voucher_id: string | null;
  readonly status: number | null;
  readonly reason: string | null;
  readonly active_order_id: string | null;
  readonly rejected_user_id: string | null;
  readonly rejected_voucher_id: string | null;
  readonly rejected_reason: string | null;
  readonly rejected_active_order_id: string | null;
  readonly voucher_known: boolean;
  readonly other_order_id: string | null;
}

/**
 * Rejected orders as rows with status 7 and a ledger line each: $1 ids, $2 buyers, $3 vouchers, $4 acceptance (Unix ms), $5 the buyers' other
 * orders, $6 reason, $7 cause, $8 actor. Answers the ids that were written.
 */
export const REJECT_ORDERS: Statement = {
  name: 'reject_orders',
  text: `
    WITH rejected AS (
      INSERT INTO tb_voucher_order (id, user_id, voucher_id, create_time, active_order_id, status, reason, cause)
      SELECT o.id, o.user_id, o.voucher_id, to_timestamp(o.accepted_ms / 1000), o.active_order_id, 7, $6::text, $7::text
      FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::float8[], $5::bigint[])
        AS o (id, user_id, voucher_id, accepted_ms, active_order_id)
      ORDER BY o.voucher_id, o.user_id, o.id
      ON CONFLICT DO NOTHING
      RETURNING id, voucher_id
    ), noted AS (
      INSERT INTO tb_stock_ledger (kind, voucher_id, order_id, reason, actor)
      SELECT 'REJECTION', voucher_id, id, $6::text, $8::text FROM rejected
    )
    SELECT id FROM rejected`,
};

/** Takes back a row of this transaction for which there was no unit: $1 id, $2 actor. The stock row is locked by this transaction. */
export const TURN_INTO_NO_UNITS: Statement = {
  name: 'turn_into_no_units',
  text: `
    WITH turned AS (
      UPDATE tb_voucher_order SET status = 7, reason = 'NO_UNITS', update_time = now() WHERE id = $1 RETURNING id, voucher_id
    )
    INSERT INTO tb_stock_ledger (kind, voucher_id, order_id, reason, actor)
    SELECT 'REJECTION', voucher_id, id, 'NO_UNITS', $2::text FROM turned`,
};

/** A rejection without an order row: $1 id, $2 buyer, $3 voucher, $4 acceptance, $5 other order, $6 reason, $7 cause, $8 actor. */
export const REJECT_WITHOUT_ROW: Statement = {
  name: 'reject_without_row',
  text: `
    WITH rejected AS (
      INSERT INTO tb_order_rejection (order_id, user_id, voucher_id, create_time, active_order_id, reason, cause)
      VALUES ($1::bigint, $2::bigint, $3::bigint, to_timestamp($4::float8 / 1000), $5::bigint, $6::text, $7::text)
      ON CONFLICT DO NOTHING
      RETURNING order_id, voucher_id
    )
    INSERT INTO tb_stock_ledger (kind, voucher_id, order_id, reason, actor)
    SELECT 'REJECTION', voucher_id, order_id, $6::text, $8::text FROM rejected`,
};

/** The vouchers of $1 whose stock row nobody holds at this moment. */
export const FREE_VOUCHERS: Statement = {
  name: 'free_vouchers',
  text: `
    SELECT voucher_id FROM tb_seckill_voucher WHERE voucher_id = ANY ($1::bigint[])
    ORDER BY voucher_id FOR NO KEY UPDATE SKIP LOCKED`,
};
