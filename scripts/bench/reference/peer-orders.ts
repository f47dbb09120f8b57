import pg from 'pg';
import { given } from './child.js';

const POOL_SIZE = 20;
const UNIQUE_VIOLATION = '23505';

/** The peers' tables stand in a schema of their own, with the columns and indexes of the product's. */
export function openPool(): pg.Pool {
  return new pg.Pool({
    connectionString: given('DATABASE_URL'),
    max: POOL_SIZE,
    idleTimeoutMillis: 0,
    options: `-c search_path=${given('PEER_SCHEMA')}`,
  });
}

/** One order in one transaction: the row first, the hot stock row last, so that it is locked as briefly as can be. */
export async function storeOrder(
  pool: pg.Pool,
  order: { readonly orderId: string; readonly userId: string; readonly voucherId: string },
): Promise<'STORED' | 'SOLD_OUT' | 'DUPLICATE_ORDER'> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    await client.query('INSERT INTO tb_voucher_order (id, user_id, voucher_id) VALUES ($1, $2, $3)', [
      order.orderId,
      order.userId,
      order.voucherId,
    ]);
    const cut = await client.query(
      'UPDATE tb_seckill_voucher SET stock = stock - 1 WHERE voucher_id = $1 AND stock > 0',
      [order.voucherId],
    );
    await client.query(cut.rowCount === 1 ? 'COMMIT' : 'ROLLBACK');
    return cut.rowCount === 1 ? 'STORED' : 'SOLD_OUT';
  } catch (error) {
    await client.query('ROLLBACK');
    if ((error as { code?: string }).code === UNIQUE_VIOLATION) return 'DUPLICATE_ORDER';
    throw error;
  } finally {
    client.release();
  }
}
