import { Counter, Gauge, Histogram } from 'prom-client';
import type { AdmissionOutcome } from '#sale-register';

/** How a purchase ended, for the metrics: what buyers hear. */
export type CountedOutcome = Exclude<AdmissionOutcome['kind'], 'NOT_PUBLISHED'> | 'VOUCHER_NOT_FOUND';

const OUTCOMES: readonly CountedOutcome[] = [
  'ACCEPTED',
  'DUPLICATE',
  'SOLD_OUT',
  'NOT_STARTED',
  'ENDED',
  'UNAVAILABLE',
  'OVERLOADED',
  'OUTCOME_UNKNOWN',
  'VOUCHER_NOT_FOUND',
];

const admissions = new Counter({
  name: 'seckill_admissions_total',
  help: 'Purchases answered, by outcome.',
  labelNames: ['outcome'],
});

/** One child per outcome, made once: finding a child by its labels costs more than counting. */
const children = Object.fromEntries(OUTCOMES.map((outcome) => [outcome, admissions.labels(outcome)])) as Record<
  CountedOutcome,
  Counter.Internal
>;
for (const child of Object.values(children)) child.inc(0);

/** Counts one answered purchase. */
export function countAdmission(outcome: CountedOutcome): void {
  children[outcome].inc();
}

export const admissionDuration = new Histogram({
  name: 'seckill_admission_duration_seconds',
  help: 'From the arrival of a purchase to its answer.',
  buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
});

export const admissionBatchSize = new Histogram({
  name: 'seckill_admission_batch_size',
  help: 'Purchases that travelled in one script call.',
  buckets: [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000],
});

let inFlight: () => number = () => 0;

/** Says where the gauge of purchases in hand reads its number, at each scrape. */
export function reportInFlight(read: () => number): void {
  inFlight = read;
}

export const admissionsInFlight = new Gauge({
  name: 'seckill_admissions_in_flight',
  help: 'Purchases in hand in this process, from arrival to answer.',
  collect() {
    this.set(inFlight());
  },
});

export const orderIdLeases = new Counter({
  name: 'seckill_order_id_leases_total',
  help: 'Blocks of order numbers leased, by result.',
  labelNames: ['result'],
});

export const rememberedRefusals = new Counter({
  name: 'seckill_remembered_refusals_total',
  help: 'Purchases refused from memory, without asking Redis; part of seckill_admissions_total.',
});

let remembered: () => number = () => 0;

/** Says where the gauge of remembered sales reads its number, at each scrape. */
export function reportRememberedRefusals(read: () => number): void {
  remembered = read;
}

export const rememberedSales = new Gauge({
  name: 'seckill_remembered_sales',
  help: 'Sales whose refusals this process may answer from memory.',
  // Processes remember the same sales.
  aggregator: 'max',
  collect() {
    this.set(remembered());
  },
});
