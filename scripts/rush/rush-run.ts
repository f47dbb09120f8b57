import { randomInt } from 'node:crypto';
import { availableParallelism, loadavg } from 'node:os';
import { signToken } from '../services/signed-token.mjs';
import { ApiView } from './api-view.js';
import { BLOCKS, userIdsOf } from './crowd-ids.js';
import { Crowd } from './crowd.js';
import type { RushOptions } from './options.js';
import { ProgressDisplay, progressLine, type ProgressSample } from './progress.js';
import { type RushResult } from './report.js';
import { gatherFacts } from './rush-facts.js';
import { NoTargetError, type RushTarget } from './rush-target.js';
import type { SaleView } from './sale-view.js';
import { StoreView } from './store-view.js';
import { judgeRush } from './verdict.js';

const SAMPLE_MS = 250;
const HOUR_MS = 3_600_000;
const ON_SALE_WITHIN_MS = 15_000;
/** Above this share of one core the generator itself is what is measured. */
const BUSY_SHARE = 0.85;
const LATE_US = 5_000;

/** Sends the crowd at the target, waits until everything is settled (bounded), and judges. @throws NoTargetError */
export async function runRush(
  options: RushOptions,
  target: RushTarget,
  { signal, out }: { signal: AbortSignal; out: NodeJS.WriteStream },
): Promise<RushResult> {
  const userId = userIdsOf(randomInt(1, BLOCKS));
  const { secret, urls } = target;
  const adminToken = signToken({ secret, user: '1', role: 'admin' });
  const voucherId = await putOnSale(urls[0] as string, adminToken, options.stock);
  const tokens = Array.from({ length: options.buyers }, (_, buyer) => signToken({ secret, user: userId(buyer) }));
  const token = (buyer: number): string => tokens[buyer] as string;
  const { view, why } = await openView(target, { urls, voucherId, adminToken, token });
  try {
    const crowd = new Crowd({ urls, voucherId, token }, options);
    const watch = new RushWatch(crowd, view, options, out);
    const [othersLoad = 0] = loadavg();
    const cpuBefore = process.cpuUsage();
    watch.start();
    target.killer?.start();
    await crowd.run(signal).finally(() => target.killer?.stop());
    const cpu = process.cpuUsage(cpuBefore);
    const generatorCpuShare = (cpu.user + cpu.system) / 1_000 / (crowd.endedMs - crowd.startedMs);
    const settledMs = await watch.settle(options.settleMs, signal);
    signal.throwIfAborted();
    const facts = await gatherFacts(crowd, view, { units: options.stock, userId, signal });
    crowd.close();
    const seconds = (crowd.endedMs - crowd.startedMs) / 1_000;
    const storedSeconds = settledMs === undefined ? undefined : (settledMs - crowd.startedMs) / 1_000;
    return {
      load: {
        kind: options.rate === undefined ? 'closed' : 'open',
        connections: options.connections,
        rate: options.rate,
      },
      target: { urls, processes: target.processes, voucherId, kills: target.killer?.kills ?? 0 },
      lookedThrough: why === undefined ? view.name : `${view.name}: ${why}`,
      facts,
      promises: judgeRush(facts),
      throughput: {
        seconds,
        answersPerSecond: crowd.latency.count / seconds,
        acceptedPerSecond:
          crowd.accepted === 0 ? 0 : (crowd.accepted * 1_000) / (crowd.lastAcceptedMs - crowd.startedMs),
        storedPerSecond: storedSeconds === undefined ? undefined : (facts.stored ?? 0) / storedSeconds,
        storedAfterSeconds: storedSeconds,
      },
      latency: crowd.latency,
      answers: crowd.answers,
      generatorCpuShare,
      warnings: warningsOf(crowd, generatorCpuShare, othersLoad),
    };
  } finally {
    await view.close();
  }
}

function warningsOf(crowd: Crowd, cpuShare: number, othersLoad: number): string[] {
  const warnings: string[] = [];
  const cores = availableParallelism();
  if (othersLoad > cores)
    warnings.push(`the machine was busy before the rush began (load ${othersLoad.toFixed(1)} on ${cores} cores)`);
  if (cpuShare > BUSY_SHARE)
    warnings.push(
      `the generator used ${Math.round(cpuShare * 100)} % of a core: the service may be faster than these figures`,
    );
  const late = crowd.lateness.quantileUs(0.99);
  if (late > LATE_US)
    warnings.push(
      `1 % of the purchases were sent more than ${Math.round(late / 1_000)} ms late by the generator itself`,
    );
  if (crowd.waited > crowd.heard.length / 100)
    warnings.push(
      `${crowd.waited} purchases found every connection taken when they were due; their waiting is in the latency`,
    );
  return warnings;
}

async function putOnSale(url: string, adminToken: string, stock: number): Promise<string> {
  const nowMs = Date.now();
  const terms = {
    shopId: '1',
    title: 'Rush',
    payValue: 8000,
    actualValue: 10000,
    stock,
    beginTime: new Date(nowMs - 60_000).toISOString(),
    endTime: new Date(nowMs + 24 * HOUR_MS).toISOString(),
  };
  const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' };
  const answer = await ask(`${url}/v1/vouchers`, { method: 'POST', headers, body: JSON.stringify(terms) });
  if (answer.status !== 201)
    throw new NoTargetError(`POST ${url}/v1/vouchers answered ${answer.status}: ${answer.text.slice(0, 300)}`);
  const { voucherId } = JSON.parse(answer.text) as { voucherId: string };
  for (const deadline = Date.now() + ON_SALE_WITHIN_MS; ;) {
    const seen = await ask(`${url}/v1/vouchers/${voucherId}`, {});
    if (seen.status === 200 && (JSON.parse(seen.text) as { unitsLeft?: number }).unitsLeft === stock) return voucherId;
    if (Date.now() > deadline)
      throw new NoTargetError(`Voucher ${voucherId} did not come on sale: ${seen.text.slice(0, 300)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function ask(url: string, init: RequestInit): Promise<{ status: number; text: string }> {
  try {
    const response = await fetch(url, { ...init, signal: AbortSignal.timeout(10_000) });
    return { status: response.status, text: await response.text() };
  } catch (error) {
    const { cause, message } = error as Error;
    throw new NoTargetError(`${url} cannot be reached: ${cause instanceof Error ? cause.message : message}`);
  }
}

async function openView(
  target: RushTarget,
  access: ConstructorParameters<typeof ApiView>[0],
): Promise<{ view: SaleView; why: string | undefined }> {
  const api = (why: string) => ({ view: new ApiView(access), why });
  if ('unknown' in target.stores) return api(target.stores.unknown);
  try {
    const view = await StoreView.open(target.stores.settings, access.voucherId);
    return view === undefined ? api('the stores that are given do not know the voucher') : { view, why: undefined };
  } catch (error) {
    return api(`the stores cannot be reached (${(error as Error).message})`);
  }
}

/** Looks at the rush from time to time, shows it, and knows when everything is settled. */
class RushWatch {
  private readonly display: ProgressDisplay;
  private before: ProgressSample | undefined;
  private timer: NodeJS.Timeout | undefined;
  private looking: Promise<unknown> = Promise.resolve();
  private storedBefore = 0;
  private lastStoredMs = performance.now();

  constructor(
    private readonly crowd: Crowd,
    private readonly view: SaleView,
    private readonly options: RushOptions,
    out: NodeJS.WriteStream,
  ) {
    this.display = new ProgressDisplay(out);
  }

  start(): void {
    this.before = { atMs: performance.now(), sent: 0, accepted: 0, stored: 0 };
    this.timer = setInterval(() => {
      this.looking = this.looking.then(() => this.look());
    }, SAMPLE_MS);
  }

  /** Waits until all that was accepted is stored and nothing is on its way; the moment (performance.now), or undefined after the limit. */
  async settle(limitMs: number, signal: AbortSignal): Promise<number | undefined> {
    clearInterval(this.timer);
    await this.looking;
    const deadline = performance.now() + limitMs;
    let storedMs: number | undefined;
    while (!signal.aborted && performance.now() < deadline) {
      const stored = await this.look();
      if (stored !== undefined && stored >= this.crowd.accepted) storedMs = this.lastStoredMs;
      const onTheWay = await this.view.onTheWay().catch(() => undefined);
      if ((storedMs !== undefined || stored === undefined) && onTheWay === 0) break;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    this.display.end();
    return storedMs;
  }

  private async look(): Promise<number | undefined> {
    const stored = await this.view.storedSoFar().catch(() => undefined);
    if (stored !== undefined && stored > this.storedBefore) {
      this.storedBefore = stored;
      this.lastStoredMs = performance.now();
    }
    const { sent, accepted } = this.crowd;
    const now = { atMs: performance.now(), sent, accepted, stored };
    const elapsedMs = now.atMs - (this.before?.atMs ?? -Infinity);
    if (elapsedMs >= SAMPLE_MS) {
      if (!this.options.quiet) this.display.show(progressLine(now, this.before, this.options.buyers), now.atMs);
      this.before = now;
    }
    return stored;
  }
}
