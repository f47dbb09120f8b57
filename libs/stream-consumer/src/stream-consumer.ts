import { Inject, Injectable, Logger, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { SETTINGS, type Settings } from '#config';
import { OrderReader, OrderRepository, StockLedger } from '#orders';
import { RedisConnections } from '#redis';
import { KeySpace, OrderLog, RebuildRegister, SaleRegister } from '#sale-register';
import { addCounts, type ConsumeCounts, noCounts } from './consume-counts.js';
import { uniqueConsumerName } from './consumer-name.js';
import { PartitionConsumer, type PartitionStatus } from './partition-consumer.js';
import { RepeatedLog } from './repeated-log.js';
import { describeError } from './retry-policy.js';

/** How soon a partition that somebody registered in the database gets its loop. */
const PARTITION_POLL_MS = 5_000;

/** What health asks: whether loops run here, and how each of them fares. */
export interface ConsumerStatus {
  /** False: no loop is meant to run in this process (CONSUMER_ENABLED=false, not started, or stopped). */
  readonly running: boolean;
  readonly consumers: readonly PartitionStatus[];
}

/**
 * Has accepted orders stored: one loop per partition, which reads the stream as a consumer of the group, hands batches to the database and
 * acknowledges what is settled. The loops start in onModuleInit, which does not wait for them, and never end before `stop`; no error ends one.
 * Tests and tools drive the same work by `runOnce`.
 */
@Injectable()
export class StreamConsumer implements OnModuleInit, OnModuleDestroy {
  private readonly logger = new Logger(StreamConsumer.name);
  private readonly consumers = new Map<number, PartitionConsumer>();
  private readonly pollLog = new RepeatedLog((line) => this.logger.warn(line));
  private readonly name: string;
  private pollTimer: NodeJS.Timeout | undefined;
  private running = false;
  private stopped: Promise<void> | undefined;

  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly connections: RedisConnections,
    private readonly keys: KeySpace,
    private readonly log: OrderLog,
    private readonly register: SaleRegister,
    private readonly rebuild: RebuildRegister,
    private readonly orders: OrderRepository,
    private readonly reader: OrderReader,
    private readonly ledger: StockLedger,
  ) {
    this.name = settings.consumer.name ?? uniqueConsumerName();
  }

  onModuleInit(): void {
    if (this.settings.consumer.enabled) this.start();
  }

  async onModuleDestroy(): Promise<void> {
    await this.stop();
  }

  /** Starts a loop for each partition of the settings, and for each further one that the database knows. Starting twice is harmless. */
  start(): void {
    if (this.running) return;
    this.running = true;
    this.stopped = undefined;
    for (let partition = 0; partition < this.settings.stream.partitions; partition += 1) this.startLoop(partition);
    this.logger.log(`consumer ${this.name} started`);
    void this.pollPartitions();
  }

  /**
   * Ends all loops: no further read begins, waiting reads end at once, work in hand is finished or, at the deadline (half of the shutdown limit),
   * left pending for others. Never rejects. Stopping twice, or before the start, is harmless.
   */
  stop(): Promise<void> {
    this.stopped ??= this.stopAll();
    return this.stopped;
  }

  /**
   * One pass by hand, without waiting for new entries: all own pending entries, one sweep over the pending entries of silent consumers, then one batch
   * of new entries. Of one partition, or of all known ones one after the other. Throws the trouble that a loop would
   * have waited for; what was in hand then stays in hand, and in the pending list. Throws also where the loops are running.
   */
  async runOnce(partition?: number): Promise<ConsumeCounts> {
    if (this.running) throw new Error('the loops are running: nothing is to be driven by hand');
    this.stopped = undefined;
    const partitions = partition === undefined ? await this.knownPartitions() : [partition];
    const counts = noCounts();
    for (const each of partitions) addCounts(counts, await this.consumerOf(each).runOnce());
    return counts;
  }

  /** How the loops fare, at this moment and without asking anybody. */
  status(): ConsumerStatus {
    return { running: this.running, consumers: [...this.consumers.values()].map((consumer) => consumer.status()) };
  }

  private async stopAll(): Promise<void> {
    const wasRunning = this.running;
    this.running = false;
    clearTimeout(this.pollTimer);
    const limitMs = Math.floor(this.settings.shutdownTimeoutMs / 2);
    await Promise.all([...this.consumers.values()].map((consumer) => consumer.stop(limitMs)));
    this.consumers.clear();
    if (wasRunning) this.logger.log(`consumer ${this.name} stopped`);
  }

  private async pollPartitions(): Promise<void> {
    try {
      for (const partition of await this.orders.partitions()) if (this.running) this.startLoop(partition);
      this.pollLog.over();
    } catch (error) {
      this.pollLog.note(`partitions of the database not known now: ${describeError(error)}`, performance.now());
    }
    if (!this.running) return;
    this.pollTimer = setTimeout(() => void this.pollPartitions(), PARTITION_POLL_MS);
    this.pollTimer.unref();
  }

  private async knownPartitions(): Promise<number[]> {
    const configured = Array.from({ length: this.settings.stream.partitions }, (_, partition) => partition);
    return [...new Set([...configured, ...(await this.orders.partitions())])].sort((a, b) => a - b);
  }

  private startLoop(partition: number): void {
    this.consumerOf(partition).start();
  }

  private consumerOf(partition: number): PartitionConsumer {
    const known = this.consumers.get(partition);
    if (known !== undefined) return known;
    const { settings, connections, keys, log, register, rebuild, orders, reader, ledger, name } = this;
    const { batchSize, blockMs, claimMinIdleMs, maxDeliveries } = settings.consumer;
    const consumer = new PartitionConsumer(
      { connections, keys, log, register, rebuild, orders, reader, ledger },
      { partition, name, batchSize, blockMs, claimMinIdleMs, maxDeliveries },
    );
    this.consumers.set(partition, consumer);
    return consumer;
  }
}
