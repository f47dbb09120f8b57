import { openSync, writeSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  type LabOrder,
  MemoryQueue,
  type OrderQueue,
  PlainListQueue,
  PubSubQueue,
  ReliableListQueue,
  StreamQueue,
} from '#queue-lab';

/** Means of the laboratory, by the name that the table shows. */
export type Means = 'memory' | 'list' | 'reliable list' | 'pub/sub' | 'stream';

/** What one child does. Sent as the first message over IPC. */
export interface LabTask {
  readonly means: Means;
  readonly url: string;
  /** The in-process queue lives in one process: it must be both. */
  readonly role: 'producer' | 'consumer' | 'both';
  /** Orders first..last are offered, both included. */
  readonly first: number;
  readonly last: number;
  /** Files to which each accepted or handled order is appended, so that a kill takes no record with it. */
  readonly acceptedFile: string;
  readonly handledFile: string;
  /** The child ends itself by SIGKILL with this order in hand, before it is recorded. */
  readonly dieAt: number | undefined;
}

export type LabMessage =
  { readonly kind: 'consuming' | 'offered' } | { readonly kind: 'memory'; readonly bytes: number };

/** Offers under way at once. */
const WINDOW = 256;

function makeQueue(means: Means, url: string): OrderQueue {
  switch (means) {
    case 'memory':
      return new MemoryQueue();
    case 'list':
      return new PlainListQueue(url, 'lab:list');
    case 'reliable list':
      return new ReliableListQueue(url, 'lab:reliable');
    case 'pub/sub':
      return new PubSubQueue(url, 'lab:channel');
    case 'stream':
      return new StreamQueue(url, 'lab:stream');
  }
}

/** Asks until the queue has taken the order. An error leaves the outcome open, so the order is offered again: it may then come twice. */
async function offerUntilTaken(queue: OrderQueue, order: LabOrder): Promise<void> {
  for (;;) {
    const taken = await queue.offer(order).catch(() => false);
    if (taken) return;
    await nextTurn();
  }
}

async function produce(queue: OrderQueue, task: LabTask): Promise<void> {
  const file = openSync(task.acceptedFile, 'a');
  let next = task.first;
  const lane = async (): Promise<void> => {
    while (next <= task.last) {
      const id = next;
      next += 1;
      if (task.role !== 'consumer' && task.dieAt === id && task.means !== 'memory')
        process.kill(process.pid, 'SIGKILL');
      await offerUntilTaken(queue, { id: String(id), userId: String(id), voucherId: '1' });
      writeSync(file, `${id}\n`);
    }
  };
  await Promise.all(Array.from({ length: WINDOW }, lane));
}

async function consume(queue: OrderQueue, task: LabTask): Promise<void> {
  const file = openSync(task.handledFile, 'a');
  await queue.consume(async ({ id }) => {
    // One turn of the event loop stands for the work; a record after it stands for its result.
    await nextTurn();
    if (task.role !== 'producer' && Number(id) === task.dieAt) process.kill(process.pid, 'SIGKILL');
    writeSync(file, `${id}\n`);
  });
}

async function run(task: LabTask): Promise<void> {
  const queue = makeQueue(task.means, task.url);
  const send = (message: LabMessage): void => void process.send?.(message);
  if (task.role !== 'producer') {
    await consume(queue, task);
    send({ kind: 'consuming' });
  }
  if (task.role !== 'consumer') {
    await produce(queue, task);
    send({ kind: 'memory', bytes: process.memoryUsage().heapUsed });
    send({ kind: 'offered' });
  }
  process.once('SIGTERM', () => void queue.close().then(() => process.exit(0)));
}

process.once('message', (task: LabTask) => void run(task));
process.once('disconnect', () => process.exit(0));
