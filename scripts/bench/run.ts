import type { BenchOptions } from './options.js';
import { type Sample, perSecond, wholeCpuUs } from './measurement.js';
import { measureDrain, measureRawInsert } from './measure-drain.js';
import { ClusterPair } from './measure-cluster.js';
import { measureDurability, measureReplicated } from './measure-durability.js';
import { type PreparedSales, prepareBuyers, prepareVouchers } from './measure-breadth.js';
import { halfOf, measureBareAtRate, measureGoodput, measureWholeAtRate } from './measure-latency.js';
import { measureAcceptance, measureBare, measurePeer, measureSoldOut, measureWhole } from './measure-purchases.js';
import { measureHmdp } from './measure-hmdp.js';
import { measureScript } from './measure-script.js';
import type { RatioName, RatioRow } from './ratios.js';
import type { Stage } from './stage.js';

/** How often a buyer clicks who is told "sold out": his token is remembered from the second time on. */
const CLICKS = 10;

/** Hears of each step while the bench runs. */
export type Say = (line: string) => void;

/** What was measured: each thing's samples, one a round, and the ratios that come of them. */
export interface BenchResult {
  readonly figures: ReadonlyMap<string, readonly Sample[]>;
  readonly rows: readonly RatioRow[];
}

/** Measures in rounds, A and B in turn, so that what slows the machine for a while slows both. */
export class BenchRun {
  private readonly figures = new Map<string, Sample[]>();
  /** What the source pipeline stored per second when its load had ended, in this round. */
  private loopPerSecond: number | undefined;
  /** Half of what the product took at most, purchases per second. */
  private halfRate: number | undefined;
  private readonly ratios = new Map<string, { name: RatioName; variant: string; values: number[] }>();

  constructor(
    private readonly stage: Stage,
    private readonly options: BenchOptions,
    private readonly say: Say,
    private readonly signal: AbortSignal,
  ) {}

  async run(): Promise<BenchResult> {
    await this.warmUp();
    for (let round = 1; round <= this.options.rounds; round += 1) {
      this.say(`Round ${round} of ${this.options.rounds}`);
      if (this.wants('R1', 'R2', 'R6', 'R13')) await this.purchases();
      if (this.wants('R3')) await this.refusals();
      if (this.wants('R4', 'R5', 'R12')) await this.drain();
      if (this.wants('R7')) await this.durability();
      if (this.wants('R8', 'R9')) await this.latency();
      if (this.wants('R10')) await this.overload();
      if (this.wants('H1')) await this.hmdp();
    }
    if (this.wants('C1')) await this.cluster();
    if (this.wants('R11')) await this.breadth();
    return { figures: this.figures, rows: [...this.ratios.values()] };
  }

  private wants(...names: RatioName[]): boolean {
    return names.some((name) => this.options.only.has(name));
  }

  /** Code that has run is faster: every process serves a little before the first clock starts. */
  private async warmUp(): Promise<void> {
    const { purchases, bareRequests, peerPurchases } = this.options.sizes;
    const part = (count: number): number => Math.max(50, Math.ceil(count / 5));
    this.say('Warming up');
    await measureBare(this.stage, 64, part(bareRequests));
    await measureWhole(this.stage, 64, part(purchases));
    if (this.options.smoke || !this.wants('R6', 'R5', 'R13')) return;
    for (const [name, count] of this.peers())
      await measurePeer(this.stage, name, 64, Math.min(part(count), peerPurchases.bullmq));
  }

  private peers(): ['database only' | 'bullmq' | 'source pipeline', number][] {
    const { databaseOnly, bullmq, sourcePipeline } = this.options.sizes.peerPurchases;
    return [
      ['database only', databaseOnly],
      ['bullmq', bullmq],
      ['source pipeline', sourcePipeline],
    ];
  }

  private async purchases(): Promise<void> {
    const { stage, options } = this;
    const { bareRequests, purchases, scriptCalls } = options.sizes;
    const bare: Record<number, Sample> = {};
    for (const connections of [64, 128]) {
      const alone = await this.take(`bare Fastify, ${connections} connections`, () =>
        measureBare(stage, connections, bareRequests),
      );
      bare[connections] = alone;
      const ours = await this.take(`acceptance, ${connections} connections`, () =>
        measureAcceptance(stage, connections, purchases),
      );
      this.ratio('R1', `${connections} connections`, cpu(ours, 'api') / cpu(alone, 'fastify'));
      if (connections !== 64) continue;
      const script = await this.take('single-purchase script, pipelines of 16', () =>
        measureScript(stage, scriptCalls),
      );
      this.ratio('R2', '', cpu(ours, 'redis') / cpu(script, 'redis'));
    }
    if (!this.wants('R6', 'R13')) return;
    const whole = await this.take('the product, load and storing at once', () => measureWhole(stage, 128, purchases));
    this.ratio('R13', '', wholeCpuUs(whole) / cpu(bare[128] as Sample, 'fastify'));
    for (const [name, count] of this.peers()) {
      const peer = await this.take(name, () => measurePeer(stage, name, 128, count));
      this.ratio('R6', name, perSecond(whole) / perSecond(peer));
      if (name === 'source pipeline') this.loopPerSecond = peer.drainPerSecond;
    }
  }

  private async refusals(): Promise<void> {
    const { stage, options } = this;
    const bare = await this.take('bare Fastify, beside refusals', () =>
      measureBare(stage, 64, options.sizes.bareRequests),
    );
    const refused = await this.take('sold-out answers', () => measureSoldOut(stage, 64, options.sizes.refusals));
    this.ratio('R3', '', perSecond(refused) / perSecond(bare));
    this.ratio('R3', 'calls', refused.redisCalls);
    const again = await this.take('sold-out answers, each buyer asks ten times', () =>
      measureSoldOut(stage, 64, options.sizes.refusals, CLICKS),
    );
    this.ratio('R3', 'again', perSecond(again) / perSecond(bare));
  }

  private async drain(): Promise<void> {
    const { stage, options } = this;
    const { queuedOrders, peerPurchases } = options.sizes;
    const raw = await this.take('raw unnest insert', () => measureRawInsert(stage, queuedOrders));
    const drain = await this.take('drain of a queue', () => measureDrain(stage, queuedOrders));
    this.ratio('R4', '', perSecond(drain) / perSecond(raw));
    this.ratio('R12', '', drain.bytesPerBuyer);
    if (!this.wants('R5')) return;
    this.loopPerSecond ??= (
      await this.take('source pipeline', () => measurePeer(stage, 'source pipeline', 128, peerPurchases.sourcePipeline))
    ).drainPerSecond;
    this.ratio('R5', '', perSecond(drain) / this.loopPerSecond);
    this.loopPerSecond = undefined;
  }

  private async durability(): Promise<void> {
    const { stage, options } = this;
    const { purchases } = options.sizes;
    const always = await this.take('256 in flight, appendfsync always', () =>
      measureDurability(stage, 'always', purchases),
    );
    const off = await this.take('256 in flight, append-only off', () => measureDurability(stage, 'off', purchases));
    this.ratio('R7', '', perSecond(always) / perSecond(off));
    const everySecond = await this.take('256 in flight, appendfsync everysec', () =>
      measureDurability(stage, 'everysec', purchases),
    );
    this.ratio('R7', 'everysec', perSecond(everySecond) / perSecond(off));
    const replicated = await this.take('256 in flight, appendfsync always and a replica confirms', () =>
      measureReplicated(stage, purchases),
    );
    this.ratio('R7', 'replica', perSecond(replicated) / perSecond(off));
  }

  private async latency(): Promise<void> {
    const { stage, options } = this;
    const { purchases, openSeconds } = options.sizes;
    // The rate is settled once: all rounds are asked the same.
    this.halfRate ??= halfOf(
      await this.take('the most, 64 connections, load and storing at once', () => measureWhole(stage, 64, purchases)),
    );
    const rate = this.halfRate;
    const bare = await this.take(`bare Fastify at half rate`, () => measureBareAtRate(stage, rate, openSeconds));
    const ours = await this.take(`the product at half rate`, () => measureWholeAtRate(stage, rate, openSeconds));
    this.ratio('R8', '', (ours.p99Ms ?? NaN) / (bare.p99Ms ?? NaN));
    this.ratio('R9', '', ours.storedP99Ms);
  }

  private async overload(): Promise<void> {
    const { stage, options } = this;
    const { purchases } = options.sizes;
    const peak = await this.take('goodput, 128 connections', () => measureGoodput(stage, 128, purchases));
    const over = await this.take('goodput, 1,280 connections', () => measureGoodput(stage, 1_280, purchases));
    this.ratio('R10', '', perSecond(over) / perSecond(peak));
  }

  private async hmdp(): Promise<void> {
    const { stage, options } = this;
    const { purchases } = options.sizes;
    const ours = await this.take('acceptance, beside hmdp’s route', () => measureAcceptance(stage, 64, purchases));
    const theirs = await this.take('acceptance over hmdp’s route', () => measureHmdp(stage, purchases));
    this.ratio('H1', '', cpu(theirs, 'api') / cpu(ours, 'api'));
  }

  /** Last but one, and by itself: its processes stand beside nothing else that is measured. */
  private async cluster(): Promise<void> {
    const { stage, options, signal } = this;
    const pair = await ClusterPair.open(stage, signal);
    try {
      const { purchases } = options.sizes;
      // Once to warm up.
      for (const name of ['single node', 'cluster'] as const) await pair.measure(name, purchases);
      const rate = halfOf(
        await this.take('8 partitions, a cluster, the most', () => pair.measure('cluster', purchases)),
      );
      for (let round = 1; round <= options.rounds; round += 1) {
        const single = await this.take('8 partitions, a single node, half rate', () =>
          pair.measure('single node', purchases, rate),
        );
        const cluster = await this.take('8 partitions, a cluster, half rate', () =>
          pair.measure('cluster', purchases, rate),
        );
        this.ratio('C1', '', wholeCpuUs(cluster) / wholeCpuUs(single));
      }
    } finally {
      await pair.close();
    }
  }

  /** Prepared once: what is compared stands side by side, and takes turns. */
  private async breadth(): Promise<void> {
    const { stage, options } = this;
    const { purchases, manyVouchers, manyBuyers, fewBuyers } = options.sizes;
    const units = purchases * options.rounds;
    await this.compare(
      'vouchers',
      ['1 voucher on sale', () => prepareVouchers(stage, 1, units)],
      [`${manyVouchers} vouchers on sale`, () => prepareVouchers(stage, manyVouchers, Math.ceil(units / manyVouchers))],
    );
    await this.compare(
      'buyers',
      [`${fewBuyers} buyers marked`, () => prepareBuyers(stage, fewBuyers, units)],
      [`${manyBuyers} buyers marked`, () => prepareBuyers(stage, manyBuyers, units)],
    );
  }

  private async compare(
    variant: string,
    [fewName, few]: readonly [string, () => Promise<PreparedSales>],
    [manyName, many]: readonly [string, () => Promise<PreparedSales>],
  ): Promise<void> {
    const { purchases } = this.options.sizes;
    const sales = [await few(), await many()] as const;
    for (let round = 1; round <= this.options.rounds; round += 1) {
      const narrow = await this.take(fewName, () => sales[0].buy(purchases));
      const broad = await this.take(manyName, () => sales[1].buy(purchases));
      this.ratio('R11', variant, wholeCpuUs(broad) / wholeCpuUs(narrow));
    }
    await Promise.all(sales.map((sale) => sale.forget()));
  }

  private async take<S extends Sample>(name: string, measure: () => Promise<S>): Promise<S> {
    if (this.signal.aborted) throw new BenchInterrupted();
    const sample = await measure();
    const samples = this.figures.get(name) ?? [];
    samples.push(sample);
    this.figures.set(name, samples);
    this.say(`  ${name}: ${Math.round(perSecond(sample))}/s`);
    return sample;
  }

  private ratio(name: RatioName, variant: string, value: number): void {
    if (!this.options.only.has(name)) return;
    const key = `${name} ${variant}`;
    const row = this.ratios.get(key) ?? { name, variant, values: [] };
    row.values.push(value);
    this.ratios.set(key, row);
  }
}

/** The bench was told to stop. */
export class BenchInterrupted extends Error {
  readonly code = 'INTERRUPTED';
}

function cpu(sample: Sample, process: string): number {
  return sample.cpuUs[process] ?? NaN;
}
