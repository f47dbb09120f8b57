import { signToken } from '../services/signed-token.mjs';
import { PEER_SCHEMA, type Stage } from './stage.js';

const DAY_MS = 86_400_000;
export const STREAM = 'stream.orders:{0}';
export const GROUP = 'g1';

let nextBuyer = 1_000_000_000;

/** The whole texts of `count` purchases, each by a buyer who has not been seen before. Signed beforehand: the clock does not run yet. */
export function purchasesOf(secret: string, voucherIds: readonly string[], count: number): string[] {
  return Array.from({ length: count }, (_, n) => {
    const token = signToken({ secret, user: String(nextBuyer++) });
    const voucherId = voucherIds[n % voucherIds.length] as string;
    return `POST /v1/vouchers/${voucherId}/orders HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${token}\r\ncontent-length: 0\r\n\r\n`;
  });
}

/** Puts a voucher on sale as an administrator does. */
export async function openSale(stage: Pick<Stage, 'apiUrl' | 'secret'>, units: number): Promise<string> {
  const now = Date.now();
  const answer = await fetch(`${stage.apiUrl}/v1/vouchers`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${signToken({ secret: stage.secret, user: '1', role: 'admin' })}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify({
      shopId: '1',
      title: 'bench',
      payValue: 80,
      actualValue: 100,
      stock: units,
      beginTime: new Date(now - 60_000).toISOString(),
      endTime: new Date(now + DAY_MS).toISOString(),
    }),
  });
  const text = await answer.text();
  if (answer.status !== 201) throw new Error(`POST /v1/vouchers answered ${answer.status}: ${text}`);
  return String((JSON.parse(text) as { voucherId: unknown }).voucherId);
}

/**
 * Takes sales out of both stores, as if they had never been: each measurement starts on empty tables, and no periodic check walks through the
 * orders of earlier ones while the clock runs.
 */
export async function forgetSales(stage: Stage, voucherIds: readonly string[]): Promise<void> {
  await stage.sql.query('DELETE FROM tb_seckill_voucher WHERE voucher_id = ANY ($1::bigint[])', [voucherIds]);
  await stage.sql.query('DELETE FROM tb_voucher WHERE id = ANY ($1::bigint[])', [voucherIds]);
  for (const id of voucherIds) {
    await stage.redis.unlink(
      ...[`seckill:sale:{0}:${id}`, `seckill:stock:{0}:${id}`, `seckill:order:{0}:${id}`, `seckill:where:${id}`],
    );
  }
  await stage.sql.query('TRUNCATE tb_voucher_order');
}

/** The peers' voucher, in their tables and under their keys; what they stored before is dropped. */
export async function openPeerSale(stage: Stage, units: number): Promise<string> {
  const voucherId = '1';
  await stage.sql.query(`TRUNCATE ${PEER_SCHEMA}.tb_voucher_order, ${PEER_SCHEMA}.tb_seckill_voucher`);
  await stage.sql.query(
    `INSERT INTO ${PEER_SCHEMA}.tb_seckill_voucher (voucher_id, stock, units, begin_time, end_time)
     VALUES ($1, $2, $2, now(), now() + interval '1 day')`,
    [voucherId, units],
  );
  await stage.redis.unlink(`peer:buyers:${voucherId}`);
  await stage.redis.set(`peer:stock:${voucherId}`, units);
  return voucherId;
}

/** Rows of the voucher in the product's table, or in the peers'. */
export async function storedOrders(stage: Stage, voucherIds: readonly string[], schema = 'public'): Promise<number> {
  const { rows } = await stage.sql.query<{ count: string }>(
    `SELECT count(*) FROM ${schema}.tb_voucher_order WHERE voucher_id = ANY ($1::bigint[])`,
    [voucherIds],
  );
  return Number(rows[0]?.count);
}

/** Looks every few milliseconds until the condition holds. */
export async function until(what: string, condition: () => Promise<boolean>, limitMs = 120_000): Promise<void> {
  const deadlineMs = performance.now() + limitMs;
  while (!(await condition())) {
    if (performance.now() > deadlineMs) throw new Error(`${what}: not within ${limitMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Everything that was accepted is stored, acknowledged and trimmed. */
export const drained = (stage: Stage) => (): Promise<boolean> =>
  stage.redis.xlen(STREAM).then((length) => length === 0);
