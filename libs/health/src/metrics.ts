import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { StreamStats } from '#sale-register';

collectDefaultMetrics();

/**
 * What was read from Redis for this very answer. A registry of its own: the figures of this process travel to other processes of the fleet,
 * and are summed there; these are of none of them.
 */
const streams = new Registry();

const labelNames = ['partition'] as const;
const gauge = (name: string, help: string) => new Gauge({ name, help, labelNames, registers: [streams] });

const length = gauge(
  'seckill_stream_length',
  'Entries in the order stream, finished ones that are not trimmed yet included',
);
const lag = gauge('seckill_stream_lag', 'Entries of the order stream that no consumer has been given yet');
const pending = gauge('seckill_stream_pending', 'Entries given to a consumer and not acknowledged');
const lagSeconds = gauge('seckill_stream_lag_seconds', 'Age of the oldest undelivered entry; 0 where there is none');
const oldestPending = gauge(
  'seckill_oldest_pending_age_seconds',
  'Age of the oldest pending entry; 0 where there is none',
);
const deadLetters = gauge('seckill_dead_letters', 'Dead letters waiting for an operator');
const consumers = gauge('seckill_stream_consumers', 'Consumer names of the group');
const gauges = [length, lag, pending, lagSeconds, oldestPending, deadLetters, consumers];

const sampled = new Gauge({
  name: 'seckill_stream_sampled',
  help: '1 while the stream gauges are of this scrape; 0 where Redis did not answer in time (then they are absent)',
  registers: [streams],
});

const buildInfo = new Gauge({
  name: 'seckill_build_info',
  help: 'Always 1; the labels name the build',
  labelNames: ['version', 'node'] as const,
  aggregator: 'first',
});
buildInfo.set({ version: productVersion(), node: process.version }, 1);

/** Sets the stream gauges to what was read; undefined: takes them away, for old numbers would pass for new ones. */
export function showStreams(all: readonly StreamStats[] | undefined): void {
  for (const each of gauges) each.reset();
  sampled.set(all === undefined ? 0 : 1);
  for (const stats of all ?? []) {
    const labels = { partition: stats.partition };
    length.set(labels, stats.length);
    if (stats.lag !== undefined) lag.set(labels, stats.lag);
    pending.set(labels, stats.pending);
    lagSeconds.set(labels, (stats.oldestUndeliveredMs ?? 0) / 1000);
    oldestPending.set(labels, (stats.oldestPendingMs ?? 0) / 1000);
    deadLetters.set(labels, stats.deadLetters);
    consumers.set(labels, stats.consumers.length);
  }
}

/** The stream gauges as they were shown last, as Prometheus text. */
export function streamMetrics(): Promise<string> {
  return streams.metrics();
}

function productVersion(): string {
  for (let folder = import.meta.dirname; folder !== dirname(folder); folder = dirname(folder)) {
    const file = join(folder, 'package.json');
    if (existsSync(file)) return (JSON.parse(readFileSync(file, 'utf8')) as { version?: string }).version ?? 'unknown';
  }
  return 'unknown';
}
