/** What a ratio must keep, and what it aims at. `most`: it may not be above; `least`: it may not be below. */
export interface RatioRule {
  readonly title: string;
  readonly direction: 'most' | 'least';
  readonly bound: number;
  readonly aim: number;
  readonly unit?: 'ms' | 'bytes' | 'calls';
}

export const RATIOS = {
  R1: {
    title: 'CPU of the API process per accepted purchase / bare Fastify per request',
    direction: 'most',
    bound: 1.5,
    aim: 1.0,
  },
  R2: {
    title: 'Redis CPU per accepted purchase / redis-benchmark -P 16 of a single-purchase script',
    direction: 'most',
    bound: 1.0,
    aim: 0.7,
  },
  R3: { title: 'sold-out answers/s / bare Fastify answers/s', direction: 'least', bound: 0.8, aim: 0.95 },
  R4: {
    title: 'drain of queued orders / raw unnest insert of the same rows',
    direction: 'least',
    bound: 0.6,
    aim: 0.85,
  },
  R5: { title: 'drain / the source texts’ COUNT 1 loop', direction: 'least', bound: 40, aim: 80 },
  R6: { title: 'stored orders/s, sustained, ours / a peer', direction: 'least', bound: 10, aim: 25 },
  R7: {
    title: 'accepted/s with appendfsync always / append-only off, 256 in flight',
    direction: 'least',
    bound: 0.7,
    aim: 0.9,
  },
  R8: {
    title: 'p99 of a purchase at half rate / p99 of bare Fastify at that rate',
    direction: 'most',
    bound: 4,
    aim: 2,
  },
  R9: { title: 'accept to stored row, p99 at half rate', direction: 'most', bound: 250, aim: 50, unit: 'ms' },
  R10: { title: 'goodput at ten times the load of the peak / peak goodput', direction: 'least', bound: 0.8, aim: 0.95 },
  R11: {
    title: 'CPU per purchase with many vouchers on sale, or many buyers, / with few',
    direction: 'most',
    bound: 1.2,
    aim: 1.05,
  },
  R12: {
    title: 'Redis memory per buyer after storing and trimming',
    direction: 'most',
    bound: 150,
    aim: 100,
    unit: 'bytes',
  },
  R13: {
    title: 'CPU of a whole stored order, all processes / bare Fastify per request',
    direction: 'most',
    bound: 4,
    aim: 2.5,
  },
  C1: {
    title: 'CPU of all our processes per stored purchase on a Redis Cluster / on a single node, 8 partitions',
    direction: 'most',
    bound: 1.15,
    aim: 1.0,
  },
  H1: {
    title: 'CPU of the API process per purchase over hmdp’s route / over ours',
    direction: 'most',
    bound: 1.15,
    aim: 1.15,
  },
} as const satisfies Record<string, RatioRule>;

export type RatioName = keyof typeof RATIOS;

/** Bounds that differ between the rows of one ratio. */
const OTHER_LIMITS: Record<string, Partial<RatioRule>> = {
  // What runs once a second whatever the load is not the answers'.
  'R3 calls': {
    title: 'commands of Redis per sold-out answer',
    bound: 0.005,
    aim: 0.005,
    direction: 'most',
    unit: 'calls',
  },
  'R7 everysec': { title: 'accepted/s with appendfsync everysec / append-only off, 256 in flight' },
  // The price of a machine that may die: two cores carry the replica, too. The limits are our own.
  'R7 replica': {
    title: 'accepted/s with appendfsync always and a confirming replica / append-only off, 256 in flight',
    bound: 0.4,
    aim: 0.7,
  },
  'R3 again': { title: 'the same where each buyer asks ten times (tokens remembered) / bare Fastify answers/s' },
  'R6 bullmq': { bound: 4, aim: 8 },
  'R6 source pipeline': { bound: 12, aim: 30 },
};

/** One line of the result: `R6 bullmq` is a row of R6. */
export interface RatioRow {
  readonly name: RatioName;
  /** What distinguishes it from the other rows of the ratio; empty where there is one. */
  readonly variant: string;
  /** One value for each round. */
  readonly values: readonly number[];
}

export function ruleOf({ name, variant }: Pick<RatioRow, 'name' | 'variant'>): RatioRule {
  return { ...RATIOS[name], ...OTHER_LIMITS[`${name} ${variant}`] };
}

export type Judgement = 'AIM' | 'BOUND' | 'MISSED';

export function judge(rule: RatioRule, value: number): Judgement {
  const keeps = (limit: number): boolean => (rule.direction === 'most' ? value <= limit : value >= limit);
  return keeps(rule.aim) ? 'AIM' : keeps(rule.bound) ? 'BOUND' : 'MISSED';
}
