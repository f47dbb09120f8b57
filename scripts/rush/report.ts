import { styleText } from 'node:util';
import type { LatencyHistogram } from './latency-histogram.js';
import { thousands } from './progress.js';
import type { PromiseKept, RushFacts } from './verdict.js';

/** Everything one rush learned. */
export interface RushResult {
  readonly load: { readonly kind: 'closed' | 'open'; readonly connections: number; readonly rate: number | undefined };
  readonly target: {
    readonly urls: readonly string[];
    readonly processes: number;
    readonly voucherId: string;
    /** Processes killed while the crowd was there. */
    readonly kills: number;
  };
  readonly lookedThrough: string;
  readonly facts: RushFacts;
  readonly promises: readonly PromiseKept[];
  readonly throughput: {
    readonly seconds: number;
    readonly answersPerSecond: number;
    readonly acceptedPerSecond: number;
    /** From the first purchase until the last accepted order was stored; undefined where that did not happen in time. */
    readonly storedPerSecond: number | undefined;
    readonly storedAfterSeconds: number | undefined;
  };
  readonly latency: LatencyHistogram;
  readonly answers: ReadonlyMap<string, number>;
  /** CPU time of the load generator per time that the load took. */
  readonly generatorCpuShare: number;
  /** Why the figures may be the generator's and not the service's. */
  readonly warnings: readonly string[];
}

const QUANTILES = [
  ['p50', 0.5],
  ['p90', 0.9],
  ['p99', 0.99],
  ['p99.9', 0.999],
] as const;
const INTERVALS_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000];
const BAR_WIDTH = 40;

/** The whole report for people. `quiet`: only the promises. */
export function reportLines(result: RushResult, { quiet, colour }: { quiet: boolean; colour: boolean }): string[] {
  const title = (text: string) => (colour ? styleText('bold', text, { validateStream: false }) : text);
  const promises = result.promises.map((promise) => promiseLine(promise, colour));
  const head = [title('PROMISES'), ...promises, `  looked at through ${result.lookedThrough}`];
  if (quiet) return [...head, verdictLine(result.promises, colour)];
  return [
    ...head,
    '',
    title('THROUGHPUT'),
    ...throughputLines(result),
    '',
    title('LATENCY'),
    ...latencyLines(result),
    '',
    title('WHAT BUYERS SAW'),
    ...answerLines(result.answers),
    '',
    ...result.warnings.map((warning) => `! ${warning}`),
    verdictLine(result.promises, colour),
  ];
}

function promiseLine({ promise, kept, detail }: PromiseKept, colour: boolean): string {
  const sign = kept === undefined ? '?' : kept ? '✓' : '✗';
  const shown =
    colour && kept !== undefined ? styleText(kept ? 'green' : 'red', sign, { validateStream: false }) : sign;
  return `  ${shown} ${promise.padEnd(40)} ${detail}`;
}

function verdictLine(promises: readonly PromiseKept[], colour: boolean): string {
  const broken = promises.filter(({ kept }) => kept === false).length;
  const open = promises.filter(({ kept }) => kept === undefined).length;
  const unseen = open > 0 ? ` (${open} could not be looked at)` : '';
  const text =
    broken === 0 ? `✓ every promise is kept${unseen}` : `✗ ${broken} of ${promises.length} promises broken${unseen}`;
  return colour ? styleText(broken === 0 ? 'green' : 'red', text, { validateStream: false }) : text;
}

function throughputLines({ throughput, load, target }: RushResult): string[] {
  const { seconds, answersPerSecond, acceptedPerSecond, storedPerSecond, storedAfterSeconds } = throughput;
  const how =
    load.kind === 'closed'
      ? `closed load, ${load.connections} connections`
      : `open load, ${thousands(load.rate ?? 0)} purchases/s, at most ${load.connections} connections`;
  const processes = `${target.processes} API process${target.processes === 1 ? '' : 'es'}`;
  const stored =
    storedPerSecond === undefined
      ? 'not all within the limit'
      : `${thousands(storedPerSecond)}/s, the last after ${(storedAfterSeconds ?? 0).toFixed(2)} s`;
  return [
    `  ${how}, ${processes}, ${seconds.toFixed(2)} s${target.kills === 0 ? '' : `; ${target.kills} processes were killed meanwhile`}`,
    `  answers   ${thousands(answersPerSecond)}/s`,
    `  accepted  ${thousands(acceptedPerSecond)}/s`,
    `  stored    ${stored}`,
  ];
}

function latencyLines({ latency, load }: RushResult): string[] {
  const from = load.kind === 'open' ? 'from the intended time' : 'from the sending';
  const figures = QUANTILES.map(([name, share]) => `${name} ${duration(latency.quantileUs(share))}`);
  const counts = latency.countsUpTo(INTERVALS_MS.map((ms) => ms * 1_000));
  const most = Math.max(1, ...counts);
  const bars = counts.map((count, at) => {
    const end = INTERVALS_MS[at];
    const name = end === undefined ? `over ${INTERVALS_MS[INTERVALS_MS.length - 1]} ms` : `up to ${end} ms`;
    const width = count === 0 ? 0 : Math.max(1, Math.round((count / most) * BAR_WIDTH));
    return { count, line: `  ${name.padStart(13)} ${'█'.repeat(width)} ${thousands(count)}` };
  });
  const first = bars.findIndex(({ count }) => count > 0);
  const last = bars.findLastIndex(({ count }) => count > 0);
  return [
    `  ${figures.join('   ')}   max ${duration(latency.maxUs)}   (${from})`,
    ...(first < 0 ? [] : bars.slice(first, last + 1).map(({ line }) => line)),
  ];
}

/** Microseconds for people. */
export function duration(us: number): string {
  if (us < 1_000) return `${Math.round(us)} us`;
  if (us < 10_000) return `${(us / 1_000).toFixed(2)} ms`;
  if (us < 1_000_000) return `${(us / 1_000).toFixed(1)} ms`;
  return `${(us / 1_000_000).toFixed(2)} s`;
}

function answerLines(answers: ReadonlyMap<string, number>): string[] {
  return [...answers]
    .sort(([, a], [, b]) => b - a)
    .map(([code, count]) => `  ${code.padEnd(20)} ${thousands(count).padStart(12)}`);
}

/** The figures for programs: --json FILE. */
export function reportJson(result: RushResult): Record<string, unknown> {
  const { latency, answers, promises, ...rest } = result;
  return {
    kept: promises.every(({ kept }) => kept !== false),
    ...rest,
    promises,
    latencyUs: {
      ...Object.fromEntries(QUANTILES.map(([name, share]) => [name, latency.quantileUs(share)])),
      max: latency.maxUs,
      mean: Math.round(latency.meanUs),
      count: latency.count,
    },
    answers: Object.fromEntries(answers),
  };
}
