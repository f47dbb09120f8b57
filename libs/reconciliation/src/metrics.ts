import { Counter, Gauge, Histogram } from 'prom-client';
import { FINDING_KINDS } from './findings.js';

/** Differences that the last full look found, by kind. */
export const driftFindings = new Gauge({
  name: 'seckill_drift_findings',
  help: 'Differences between Redis, stream and database found by the last inspection',
  labelNames: ['kind'],
  // What all processes share is told once, not summed; here and below.
  aggregator: 'max',
});
for (const kind of FINDING_KINDS) driftFindings.set({ kind }, 0);

export const repairs = new Counter({
  name: 'seckill_repairs_total',
  help: 'Repairs made by the reconciliation, by kind of finding',
  labelNames: ['kind'],
});

export const lastRun = new Gauge({
  name: 'seckill_reconciliation_last_run_timestamp_seconds',
  help: 'When this process last finished an inspection (Unix time)',
  aggregator: 'max',
});

export const rebuilds = new Counter({
  name: 'seckill_rebuilds_total',
  help: 'Rebuilds of a partition or of single vouchers, by outcome',
  labelNames: ['scope', 'outcome'],
});

export const rebuildDuration = new Histogram({
  name: 'seckill_rebuild_duration_seconds',
  help: 'How long a rebuild took until the sales were open again',
  labelNames: ['scope'],
  buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 600],
});

export const partitionsClosed = new Gauge({
  name: 'seckill_partitions_closed',
  help: 'Partitions that this process found closed at its last look',
  aggregator: 'max',
});
