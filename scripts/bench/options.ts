import { parseArgs } from 'node:util';
import { RATIOS, type RatioName } from './ratios.js';

/** How much one run of the bench does. Counts are of purchases or requests per round. */
export interface BenchSizes {
  readonly purchases: number;
  readonly bareRequests: number;
  readonly scriptCalls: number;
  readonly refusals: number;
  readonly queuedOrders: number;
  /** Purchases sent at the peers: database only, Lua + BullMQ, the source texts' pipeline. */
  readonly peerPurchases: { readonly databaseOnly: number; readonly bullmq: number; readonly sourcePipeline: number };
  /** Seconds of an open load. */
  readonly openSeconds: number;
  readonly manyVouchers: number;
  readonly manyBuyers: number;
  readonly fewBuyers: number;
}

export const FULL: BenchSizes = {
  purchases: 50_000,
  bareRequests: 80_000,
  scriptCalls: 300_000,
  refusals: 80_000,
  queuedOrders: 200_000,
  peerPurchases: { databaseOnly: 5_000, bullmq: 15_000, sourcePipeline: 4_000 },
  openSeconds: 10,
  manyVouchers: 1_000,
  manyBuyers: 5_000_000,
  fewBuyers: 1_000,
};

export const SMOKE: BenchSizes = {
  purchases: 300,
  bareRequests: 300,
  scriptCalls: 2_000,
  refusals: 300,
  queuedOrders: 3_000,
  peerPurchases: { databaseOnly: 60, bullmq: 60, sourcePipeline: 60 },
  openSeconds: 0.5,
  manyVouchers: 10,
  manyBuyers: 2_000,
  fewBuyers: 10,
};

export interface BenchOptions {
  readonly smoke: boolean;
  readonly rounds: number;
  readonly only: ReadonlySet<RatioName>;
  readonly sizes: BenchSizes;
  /** Where the figures go; undefined: bench/results with the time in its name. */
  readonly jsonFile: string | undefined;
  /** Writes the picture and the table in docs/performance.md anew. */
  readonly publish: boolean;
  /** Measures nothing but how the API process spends its time. */
  readonly profile: boolean;
  /** Measures nothing but the memory of the API process over so many requests; undefined: not asked for. */
  readonly rssRequests: number | undefined;
}

export type ParsedOptions =
  | { readonly kind: 'RUN'; readonly options: BenchOptions }
  | { readonly kind: 'HELP' }
  | { readonly kind: 'BAD'; readonly problems: readonly string[] };

export const USAGE = `npm run bench -- [--smoke] [--rounds N] [--only R1,R3]
  Starts the product, its references and its peers on one Redis and one PostgreSQL, measures them in turn, and prints the ratios of docs/performance.md.
  Exit code 0: every ratio was measured, 1: a bound is missed, 2: it could not run.
  --smoke       tiny sizes: shows that everything works; the figures mean nothing (always exit code 0 when it worked)
  --rounds N    how often A and B take turns (default 5, with --smoke 1)
  --scale F     F times the full sizes (default 1): 0.1 for a slow or busy machine
  --only LIST   some of ${Object.keys(RATIOS).join(', ')}
  --profile     instead: how the API process spends its microseconds, from a CPU profile; written to docs/performance.md with --publish
  --rss-requests N  instead: the memory of the API process over N requests (10000000 take about a quarter of an hour)
  --json FILE   writes the figures there instead of bench/results
  --publish     also writes bench/results/latest.json, docs/bench.svg and the table in docs/performance.md anew (default of a whole, full run)
`;

const MAX_ROUNDS = 99;
const MAX_SCALE = 100;
const LEAST_COUNT = 50;

/** Reads the command line; names every fault at once. */
export function parseBenchOptions(args: readonly string[]): ParsedOptions {
  let values;
  try {
    ({ values } = parseArgs({
      args: [...args],
      options: {
        smoke: { type: 'boolean', default: false },
        rounds: { type: 'string' },
        only: { type: 'string' },
        scale: { type: 'string' },
        json: { type: 'string' },
        publish: { type: 'boolean' },
        profile: { type: 'boolean', default: false },
        'rss-requests': { type: 'string' },
        help: { type: 'boolean', short: 'h' },
      },
    }));
  } catch (error) {
    return { kind: 'BAD', problems: [error instanceof Error ? error.message : String(error)] };
  }
  if (values.help === true) return { kind: 'HELP' };
  const problems: string[] = [];
  const rounds = values.rounds === undefined ? (values.smoke ? 1 : 5) : Number(values.rounds);
  if (!Number.isSafeInteger(rounds) || rounds < 1 || rounds > MAX_ROUNDS)
    problems.push(`--rounds is "${values.rounds}"; allowed are whole numbers 1..${MAX_ROUNDS}`);
  const all = Object.keys(RATIOS) as RatioName[];
  const asked = values.only?.split(',') ?? all;
  for (const name of asked)
    if (!all.includes(name as RatioName)) problems.push(`--only names "${name}"; known are ${all.join(', ')}`);
  const scale = Number(values.scale ?? 1);
  if (!(scale > 0 && scale <= MAX_SCALE))
    problems.push(`--scale is "${values.scale}"; allowed is a number up to ${MAX_SCALE}`);
  const rssRequests = values['rss-requests'] === undefined ? undefined : Number(values['rss-requests']);
  if (rssRequests !== undefined && !(Number.isSafeInteger(rssRequests) && rssRequests >= 1))
    problems.push(`--rss-requests is "${values['rss-requests']}"; allowed are whole numbers from 1`);
  if (problems.length > 0) return { kind: 'BAD', problems };
  const options: BenchOptions = {
    smoke: values.smoke,
    rounds,
    only: new Set(asked as RatioName[]),
    sizes: scaled(values.smoke ? SMOKE : FULL, scale),
    jsonFile: values.json,
    profile: values.profile,
    rssRequests,
    publish: values.publish ?? (!values.smoke && !values.profile && values.only === undefined),
  };
  return { kind: 'RUN', options };
}

/** Every count F times as large; how many vouchers stand beside each other stays. */
function scaled(sizes: BenchSizes, scale: number): BenchSizes {
  const times = (count: number): number => Math.max(LEAST_COUNT, Math.round(count * scale));
  const { peerPurchases } = sizes;
  return {
    ...sizes,
    purchases: times(sizes.purchases),
    bareRequests: times(sizes.bareRequests),
    scriptCalls: times(sizes.scriptCalls),
    refusals: times(sizes.refusals),
    queuedOrders: times(sizes.queuedOrders),
    peerPurchases: {
      databaseOnly: times(peerPurchases.databaseOnly),
      bullmq: times(peerPurchases.bullmq),
      sourcePipeline: times(peerPurchases.sourcePipeline),
    },
    openSeconds: Math.max(0.5, sizes.openSeconds * scale),
    manyBuyers: times(sizes.manyBuyers),
  };
}
