import { Counter, Gauge, Histogram } from 'prom-client';

/** Orders whose rejection was settled. */
export const ordersRejected = new Counter({
  name: 'seckill_orders_rejected_total',
  help: 'Accepted orders that ended as a recorded rejection, by reason.',
  labelNames: ['reason'] as const,
});

/** Entries moved to the dead letters. */
export const deadLetters = new Counter({
  name: 'seckill_dead_letters_total',
  help: 'Stream entries that became dead letters, by cause.',
  labelNames: ['cause'] as const,
});

/** Entries whose fields were gone. */
export const vanishedEntries = new Counter({
  name: 'seckill_vanished_entries_total',
  help: 'Pending stream entries that had been deleted from the stream before they were handled.',
});

export const batchSize = new Histogram({
  name: 'seckill_consumer_batch_size',
  help: 'Orders per batch handed to the database.',
  buckets: [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 10_000],
});

export const consumeDuration = new Histogram({
  name: 'seckill_consumer_batch_duration_seconds',
  help: 'From the begin of a batch to the acknowledgement of its entries.',
  buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
});

/** Passing failures after which the consumer paused and went on. */
export const consumerRetries = new Counter({
  name: 'seckill_consumer_retries_total',
  help: 'Failures after which the consumer waited and tried again, by where they came from.',
  labelNames: ['from'] as const,
});

/** Entries left pending because their voucher was locked. */
export const deferredOrders = new Counter({
  name: 'seckill_orders_deferred_total',
  help: 'Orders left pending for a while because the row of their voucher was locked.',
});

/** Entries taken over from consumers that were silent for too long. */
export const claimedEntries = new Counter({
  name: 'seckill_claimed_entries_total',
  help: 'Stream entries claimed from consumers that were silent for too long.',
});

export const loopHeartbeat = new Gauge({
  name: 'seckill_consumer_heartbeat_timestamp_seconds',
  help: 'When the loop of this partition last turned.',
  labelNames: ['partition'] as const,
  // Of several processes: the loop that has stood still for longest.
  aggregator: 'min',
});
