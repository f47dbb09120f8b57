import { Worker } from 'bullmq';
import { BULLMQ_QUEUE, bullmqConnection } from './bullmq-queue.js';
import { tellReady } from './child.js';
import { openPool, storeOrder } from './peer-orders.js';

/** Peer (b), storing side: a BullMQ worker, one transaction per job, twenty at once. */
const CONCURRENCY = 20;
const pool = openPool();
const worker = new Worker<{ orderId: string; userId: string; voucherId: string }>(
  BULLMQ_QUEUE,
  async (job) => {
    await storeOrder(pool, job.data);
  },
  { connection: bullmqConnection(), concurrency: CONCURRENCY },
);
await worker.waitUntilReady();
tellReady(0);
