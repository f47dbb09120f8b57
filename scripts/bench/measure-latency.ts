import { closedLoad, openLoad } from './load.js';
import { answersWith, perSecond, type Sample, sampleOf, startCpu } from './measurement.js';
import { drained, forgetSales, openSale, purchasesOf, storedOrders, until } from './sale.js';
import type { Stage } from './stage.js';

const CONNECTIONS = 64;
/** What a buyer waits for at most; later answers are no goodput. */
const PATIENCE_MS = 1_500;

/** Bare Fastify under an open load of `rate` requests per second. */
export async function measureBareAtRate(stage: Stage, rate: number, seconds: number): Promise<Sample> {
  const bare = await stage.child('bare-fastify');
  const requests = purchasesOf(stage.secret, ['1'], Math.ceil(rate * seconds));
  const cpu = startCpu(stage, { fastify: bare.pid });
  const load = await openLoad(bare.port, CONNECTIONS, requests, rate);
  const used = cpu();
  return sampleOf(answersWith(202, load, 'bare Fastify'), load.wallMs, used, load);
}

/** The whole product under an open load. `storedP99Ms`: from acceptance (Redis's clock) to the commit of the row (PostgreSQL's). */
export async function measureWholeAtRate(
  stage: Stage,
  rate: number,
  seconds: number,
): Promise<Sample & { readonly storedP99Ms: number }> {
  const count = Math.ceil(rate * seconds);
  const voucherId = await openSale(stage, count);
  const requests = purchasesOf(stage.secret, [voucherId], count);
  const watched = { api: stage.apiPid, worker: stage.worker.pid, redis: stage.redisPid, postgres: stage.postgresPid };
  const cpu = startCpu(stage, watched);
  const load = await openLoad(stage.apiPort, CONNECTIONS, requests, rate);
  await until('the orders are stored', drained(stage));
  const used = cpu();
  const accepted = answersWith(202, load, 'purchases');
  const { rows } = await stage.sql.query<{ p99: number }>(
    `SELECT percentile_cont(0.99) WITHIN GROUP (ORDER BY extract(epoch FROM pg_xact_commit_timestamp(xmin) - create_time) * 1000)
       AS p99 FROM tb_voucher_order WHERE voucher_id = $1`,
    [voucherId],
  );
  await forgetSales(stage, [voucherId]);
  return { ...sampleOf(accepted, load.wallMs, used, load), storedP99Ms: Number(rows[0]?.p99 ?? NaN) };
}

/** Purchases accepted in time per second, with so many connections that each have one request in flight. The rest is refused or late. */
export async function measureGoodput(stage: Stage, connections: number, count: number): Promise<Sample> {
  const voucherId = await openSale(stage, count);
  const requests = purchasesOf(stage.secret, [voucherId], count);
  const cpu = startCpu(stage, { api: stage.apiPid, redis: stage.redisPid });
  const load = await closedLoad(stage.apiPort, connections, requests);
  const used = cpu();
  await until('the orders are stored', drained(stage));
  const accepted = load.byStatus.get(202) ?? 0;
  const stored = await storedOrders(stage, [voucherId]);
  await forgetSales(stage, [voucherId]);
  if (stored < accepted) throw new Error(`${accepted} orders were accepted under overload, ${stored} are stored`);
  const inTime = load.latency.countsUpTo([PATIENCE_MS * 1_000])[0] ?? 0;
  return sampleOf(Math.max(1, Math.min(accepted, inTime)), load.wallMs, used, load);
}

export const halfOf = (sample: Sample): number => Math.max(20, Math.floor(perSecond(sample) / 2));
