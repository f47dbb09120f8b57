import { closedLoad } from './load.js';
import { answersWith, type Sample, sampleOf, startCpu } from './measurement.js';
import { drained, forgetSales, openPeerSale, openSale, purchasesOf, storedOrders, until } from './sale.js';
import { type ApiProcess, PEER_SCHEMA, type Stage } from './stage.js';

const IDLE_MS = 1_000;

/** Bare Fastify: requests with the texts of purchases, answered with the body of an accepted one. */
export async function measureBare(stage: Stage, connections: number, count: number): Promise<Sample> {
  const bare = await stage.child('bare-fastify');
  const requests = purchasesOf(stage.secret, ['1'], count);
  const cpu = startCpu(stage, { fastify: bare.pid });
  const load = await closedLoad(bare.port, connections, requests);
  const used = cpu();
  return sampleOf(answersWith(202, load, 'bare Fastify'), load.wallMs, used, load);
}

/** Acceptance alone: the worker stands still, and stores the orders after the clock has stopped. */
export async function measureAcceptance(
  stage: Stage,
  connections: number,
  count: number,
  api: ApiProcess = stage.api,
): Promise<Sample> {
  const voucherId = await openSale(stage, count);
  const requests = purchasesOf(stage.secret, [voucherId], count);
  stage.worker.freeze();
  try {
    const cpu = startCpu(stage, { api: api.pid, redis: stage.redisPid });
    const load = await closedLoad(api.port, connections, requests);
    const used = cpu();
    return sampleOf(answersWith(202, load, 'purchases'), load.wallMs, used, load);
  } finally {
    stage.worker.thaw();
    await until('the orders are stored', drained(stage));
    await forgetSales(stage, [voucherId]);
  }
}

/** Load and storing at once; the clock stops when the last accepted order is stored. */
export async function measureWhole(stage: Stage, connections: number, count: number): Promise<Sample> {
  const voucherId = await openSale(stage, count);
  const requests = purchasesOf(stage.secret, [voucherId], count);
  const watched = {
    api: stage.apiPid,
    worker: stage.worker.pid,
    redis: stage.redisPid,
    postgres: stage.postgresPid,
  };
  const cpu = startCpu(stage, watched);
  const startMs = performance.now();
  const load = await closedLoad(stage.apiPort, connections, requests);
  await until('the orders are stored', drained(stage));
  const wallMs = performance.now() - startMs;
  const used = cpu();
  const accepted = answersWith(202, load, 'purchases');
  checkStored('the product', accepted, await storedOrders(stage, [voucherId]));
  await forgetSales(stage, [voucherId]);
  return sampleOf(accepted, wallMs, used, load);
}

export type PeerName = 'database only' | 'bullmq' | 'source pipeline';

const PEERS: Record<
  PeerName,
  { readonly processes: readonly string[]; readonly isIdle: (stage: Stage) => Promise<boolean> }
> = {
  'database only': { processes: ['database-only'], isIdle: () => Promise.resolve(true) },
  bullmq: {
    processes: ['bullmq-api', 'bullmq-worker'],
    isIdle: async ({ redis }) =>
      (await redis.llen('bull:peer-orders:wait')) + (await redis.llen('bull:peer-orders:active')) === 0,
  },
  'source pipeline': { processes: ['source-pipeline'], isIdle: async (stage) => (await unstored(stage)) === 0 },
};

/** Undelivered and unacknowledged entries of the source pipeline. */
async function unstored({ redis }: Stage): Promise<number> {
  const [group] = (await redis.xinfo('GROUPS', 'peer:stream.orders')) as unknown[][];
  const fact = (name: string): number => Number(group?.[group.indexOf(name) + 1]);
  return fact('lag') + fact('pending');
}

/** A peer under load until the last order is stored. `drain`: what it stored per second when the load had ended (source pipeline). */
export async function measurePeer(
  stage: Stage,
  name: PeerName,
  connections: number,
  count: number,
): Promise<Sample & { readonly drainPerSecond: number }> {
  const { processes, isIdle } = PEERS[name];
  const running = await Promise.all(processes.map((process) => stage.child(process)));
  const voucherId = await openPeerSale(stage, count);
  const requests = purchasesOf(stage.secret, [voucherId], count);
  const pids = Object.fromEntries(running.map(({ pid }, nth) => [nth === 0 ? 'api' : 'worker', pid]));
  const cpu = startCpu(stage, { ...pids, redis: stage.redisPid, postgres: stage.postgresPid });
  const startMs = performance.now();
  const load = await closedLoad((running[0] as { port: number }).port, connections, requests);
  const left = name === 'source pipeline' ? await unstored(stage) : 0;
  const loadedMs = performance.now();
  await until(`${name}: the orders are stored`, () => isIdle(stage));
  const endMs = performance.now();
  const used = cpu();
  const accepted = answersWith(202, load, name);
  checkStored(name, accepted, await storedOrders(stage, [voucherId], PEER_SCHEMA));
  if (name === 'source pipeline') await stage.redis.xtrim('peer:stream.orders', 'MAXLEN', 0);
  const sample = sampleOf(accepted, endMs - startMs, used, load);
  return { ...sample, drainPerSecond: left === 0 ? NaN : (left * 1_000) / (endMs - loadedMs) };
}

function checkStored(who: string, accepted: number, stored: number): void {
  if (stored !== accepted) throw new Error(`${who} accepted ${accepted} orders and stored ${stored}`);
}

/**
 * Answers of a sold-out sale to buyers who have none of it, and the script calls that Redis had for each. `clicks`: how often each buyer asks in
 * all, the whole crowd in turn; the crowd of one round fits the memory of tokens.
 */
export async function measureSoldOut(
  stage: Stage,
  connections: number,
  count: number,
  clicks = 1,
): Promise<Sample & { readonly redisCalls: number }> {
  const units = 100;
  const voucherId = await openSale(stage, units);
  const sold = await closedLoad(stage.apiPort, 10, purchasesOf(stage.secret, [voucherId], units));
  answersWith(202, sold, 'the purchases before');
  await until('the orders are stored', drained(stage));
  // The first refusals teach the process that the sale is sold out.
  await closedLoad(stage.apiPort, 10, purchasesOf(stage.secret, [voucherId], 100));
  const crowd = purchasesOf(stage.secret, [voucherId], Math.ceil(count / clicks));
  const requests = Array.from({ length: clicks }, () => crowd).flat();
  // What runs once a second, whatever the load, is not the answers'.
  const idleCalls = -(await scriptCalls(stage));
  await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
  const callsBefore = await scriptCalls(stage);
  const idlePerMs = (idleCalls + callsBefore) / IDLE_MS;
  const cpu = startCpu(stage, { api: stage.apiPid, redis: stage.redisPid });
  const load = await closedLoad(stage.apiPort, connections, requests);
  const used = cpu();
  const calls = Math.max(0, (await scriptCalls(stage)) - callsBefore - idlePerMs * load.wallMs);
  await forgetSales(stage, [voucherId]);
  const answered = answersWith(409, load, 'purchases of a sold-out voucher');
  return { ...sampleOf(answered, load.wallMs, used, load), redisCalls: calls / answered };
}

/** Calls that Redis has served: of scripts, and of the commands that the product sends for a purchase without one. */
async function scriptCalls({ redis }: Stage): Promise<number> {
  const stats = await redis.info('commandstats');
  return ['eval', 'evalsha', 'fcall', 'hget', 'hmget', 'get']
    .map((name) => Number(new RegExp(`^cmdstat_${name}:calls=(\\d+)`, 'm').exec(stats)?.[1] ?? 0))
    .reduce((sum, calls) => sum + calls, 0);
}
