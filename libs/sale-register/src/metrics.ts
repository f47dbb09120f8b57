import { Counter, Histogram } from 'prom-client';

export const batchPurchases = new Histogram({
  name: 'seckill_register_batch_purchases',
  help: 'Purchases decided by one call of the admission script',
  buckets: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000],
});

export const callSeconds = new Histogram({
  name: 'seckill_register_admit_seconds',
  help: 'Time from sending an admission call to its answer, or to giving up',
  buckets: [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2],
});

export const failedCalls = new Counter({
  name: 'seckill_register_failed_admit_calls_total',
  help: 'Admission calls that Redis did not decide, by why',
  labelNames: ['why'],
});

export const unconfirmed = new Counter({
  name: 'seckill_register_unconfirmed_total',
  help: 'Purchases whose order no replica confirmed in time',
});
