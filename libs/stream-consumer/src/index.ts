export type { ConsumeCounts } from './consume-counts.js';
export { StreamConsumer } from './stream-consumer.js';
export type { ConsumerStatus } from './stream-consumer.js';
export type { PartitionStatus } from './partition-consumer.js';
export { StreamConsumerModule } from './stream-consumer.module.js';
