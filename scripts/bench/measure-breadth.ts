import { closedLoad } from './load.js';
import { answersWith, type Sample, sampleOf, startCpu } from './measurement.js';
import { drained, forgetSales, openSale, purchasesOf, until } from './sale.js';
import type { Stage } from './stage.js';

const CONNECTIONS = 64;
const PIECE = 10_000;
const FIRST_BUYER = 100_000_000_000;
const FIRST_ORDER_ID = 500_000_000_000_000_000n;
/** More than the buyers of one sale. */
const IDS_PER_VOUCHER = 100_000_000n;
const DRAFT = 'bench:marks';

/** Sales whose purchases are measured again and again. */
export interface PreparedSales {
  readonly voucherIds: readonly string[];
  buy(count: number): Promise<Sample>;
  forget(): Promise<void>;
}

/** So many vouchers on sale; purchases are spread over all of them evenly. `units` of each. */
export async function prepareVouchers(stage: Stage, vouchers: number, units: number): Promise<PreparedSales> {
  const ids: string[] = [];
  for (let n = 0; n < vouchers; n += 1) ids.push(await openSale(stage, units));
  return prepared(stage, ids);
}

/** One voucher that so many have bought before, with their orders in both stores, and `units` more. */
export async function prepareBuyers(stage: Stage, buyers: number, units: number): Promise<PreparedSales> {
  const { redis, sql } = stage;
  const voucherId = await openSale(stage, buyers + units);
  const firstOrderId = FIRST_ORDER_ID + BigInt(voucherId) * IDS_PER_VOUCHER;
  await redis.unlink(DRAFT);
  for (let first = 0; first < buyers; first += PIECE) {
    const marks: string[] = [];
    for (let n = first; n < Math.min(first + PIECE, buyers); n += 1)
      marks.push(String(FIRST_BUYER + n), String(firstOrderId + BigInt(n)));
    await redis.hset(DRAFT, ...marks);
  }
  // Both stores show them in the same moment: a periodic check must not find them in one alone.
  await sql.query('BEGIN');
  await sql.query(
    `INSERT INTO tb_voucher_order (id, user_id, voucher_id)
     SELECT $2::bigint + n, $3::bigint + n, $1::bigint FROM generate_series(0, $4::bigint - 1) n`,
    [voucherId, String(firstOrderId), FIRST_BUYER, buyers],
  );
  await sql.query('UPDATE tb_seckill_voucher SET stock = stock - $2 WHERE voucher_id = $1', [voucherId, buyers]);
  await redis
    .multi()
    .rename(DRAFT, `seckill:order:{0}:${voucherId}`)
    .decrby(`seckill:stock:{0}:${voucherId}`, buyers)
    .exec();
  await sql.query('COMMIT');
  return prepared(stage, [voucherId]);
}

function prepared(stage: Stage, voucherIds: readonly string[]): PreparedSales {
  return {
    voucherIds,
    buy: (count) => acceptance(stage, voucherIds, count),
    forget: () => forgetSales(stage, voucherIds),
  };
}

/** The worker stands still while the clock runs. */
async function acceptance(stage: Stage, voucherIds: readonly string[], count: number): Promise<Sample> {
  const requests = purchasesOf(stage.secret, voucherIds, count);
  stage.worker.freeze();
  try {
    const cpu = startCpu(stage, { api: stage.apiPid, redis: stage.redisPid });
    const load = await closedLoad(stage.apiPort, CONNECTIONS, requests);
    const used = cpu();
    return sampleOf(answersWith(202, load, 'purchases'), load.wallMs, used, load);
  } finally {
    stage.worker.thaw();
    await until('the orders are stored', drained(stage));
  }
}
