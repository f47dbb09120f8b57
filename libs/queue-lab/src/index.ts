export { MEMORY_QUEUE_CAPACITY, MemoryQueue } from './memory-queue.js';
export { PlainListQueue, ReliableListQueue } from './list-queue.js';
export type { LabOrder, OrderHandler, OrderQueue } from './order-queue.js';
export { PubSubQueue } from './pubsub-queue.js';
export { StreamQueue, type StreamReader } from './stream-queue.js';
