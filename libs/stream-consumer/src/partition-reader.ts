import { Logger } from '@nestjs/common';
import type { RawEntry } from '#order-stream';
import type { OrderRepository } from '#orders';
import type { RedisConnection, RedisConnections } from '#redis';
import type { KeySpace, OrderLog } from '#sale-register';
import { GroupReader, type ReaderPlace } from './group-reader.js';
import * as metrics from './metrics.js';
import { ReadPlan, type ReadSource, sweepEveryMs } from './read-plan.js';
import { describeError, streamTrouble } from './retry-policy.js';

/** One read: where it came from, and what it brought. */
export interface ReadResult {
  readonly source: ReadSource['kind'];
  /** The partition's epoch number as it was known before the read. */
  readonly epochNumber: number;
  readonly entries: readonly RawEntry[];
  /** Ids that were pending and that the server dropped from the pending list because their entries are gone. */
  readonly vanished: readonly string[];
  /** How often the entry was handed out; an id that is missing was handed out once. */
  readonly deliveries: ReadonlyMap<string, number>;
}

export interface ReaderFaces {
  readonly connections: RedisConnections;
  readonly keys: KeySpace;
  readonly log: OrderLog;
  readonly orders: OrderRepository;
}

export interface ReaderOptions {
  readonly partition: number;
  readonly name: string;
  readonly batchSize: number;
  readonly blockMs: number;
  readonly claimMinIdleMs: number;
}

/**
 * New entries are read no sooner than this after the last of them, unless those filled a batch: what arrives meanwhile shares one transaction and one
 * acknowledgement. The first entry after a pause does not wait.
 */
const PACE_MS = 10;
/** How long a read waits for its connection before it counts as failed and is given up: a frozen server accepts connections too. */
const CONNECT_LIMIT_MS = 2_000;
/** So long reads go over the command connection once the stream was on its way to another node of the cluster, and do not wait for entries. */
const DETOUR_MS = 1_000;
const DETOUR_PACE_MS = 100;
/** How long the answer to a read may take beyond its wait for new entries, before the server counts as frozen. */
const ANSWER_LIMIT_MS = 5_000;
/** Repairs of a missing group in a row that count as no trouble. */
const QUIET_REPAIRS = 3;

/**
 * Reads one partition by the plan, over a connection of its own. Where stream or group is missing it creates them, from the stream's beginning, at any
 * moment. After a failure the own pending list is read again first: a lost reply may have handed entries out.
 */
export class PartitionReader {
  readonly plan: ReadPlan;
  /** Known after the first read; set by whoever learns of a newer one. */
  epochNumber: number | undefined;

  private readonly logger = new Logger('StreamConsumer');
  private reader: { readonly group: GroupReader; readonly connection: RedisConnection } | undefined;
  private closed = false;
  private groupKnown = false;
  private repairs = 0;
  private tidyAtMs = Number.NEGATIVE_INFINITY;
  private nextNewMs = Number.NEGATIVE_INFINITY;
  private detourEndsMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly faces: ReaderFaces,
    private readonly options: ReaderOptions,
  ) {
    this.plan = new ReadPlan({ blockMs: options.blockMs, sweepEveryMs: sweepEveryMs(options.claimMinIdleMs) });
  }

  /** The next read of the plan; `wait` false: never waits for new entries. Throws the trouble that prevented it. */
  async read(wait: boolean): Promise<ReadResult> {
    try {
      if (!this.groupKnown) await this.ensureGroup();
      this.epochNumber ??= await this.faces.orders.epochNumber(this.options.partition);
      const source = this.plan.next(performance.now());
      const limitMs = ANSWER_LIMIT_MS + (wait && source.kind === 'NEW' ? source.blockMs : 0);
      const result = await this.inTime(this.readFrom(source, this.epochNumber, wait), limitMs);
      this.repairs = 0;
      return result;
    } catch (error) {
      this.plan.restart();
      // The command connection follows the stream: over it this answer does not come again.
      if (isOnItsWay(error)) {
        this.detourEndsMs = performance.now() + DETOUR_MS;
        return this.read(wait);
      }
      if (streamTrouble(error) !== 'GROUP_MISSING') throw error;
      return this.repair(error);
    }
  }

  /** The epoch number that holds now; later reads go under it. @throws DatabaseUnavailableError */
  async readEpochNumber(): Promise<number> {
    return (this.epochNumber = await this.faces.orders.epochNumber(this.options.partition));
  }

  /** After `close`: the beginning of the own pending list, over the command connection. For entries that a reply handed out which was cut off. */
  async readLeft(): Promise<ReadResult> {
    const { connections, orders } = this.faces;
    this.epochNumber ??= await orders.epochNumber(this.options.partition);
    const group = new GroupReader(connections.command, this.place());
    const entries = await group.readOwnPending('0-0', this.options.batchSize);
    const deliveries = await deliveriesOf(group, entries);
    return { source: 'OWN_PENDING', epochNumber: this.epochNumber, entries, vanished: [], deliveries };
  }

  /** Ends a waiting read at once, and the connection with it; later reads throw. Harmless when repeated. */
  close(): void {
    this.closed = true;
    this.disconnect();
  }

  /** A read that takes longer fails, and its connection is replaced: the block time of the settings may be far longer than this read's own. */
  private async inTime(read: Promise<ReadResult>, limitMs: number): Promise<ReadResult> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(new Error(`Redis did not answer a read within ${limitMs} ms`));
        this.disconnect();
      }, limitMs);
    });
    try {
      return await Promise.race([read, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  private disconnect(): void {
    if (this.reader !== undefined) this.faces.connections.close(this.reader.connection);
    this.reader = undefined;
  }

  private async readFrom(source: ReadSource, epochNumber: number, wait: boolean): Promise<ReadResult> {
    if (source.kind === 'NEW' && wait) await this.pace();
    if (this.closed) throw new Error('the consumer of this partition has been stopped');
    // Said once for the whole read: over the command connection none may wait, it would hold up every other command.
    const detour = performance.now() < this.detourEndsMs;
    const group = detour ? new GroupReader(this.faces.connections.command, this.place()) : await this.openReader();
    const { batchSize } = this.options;
    switch (source.kind) {
      case 'OWN_PENDING': {
        const entries = await group.readOwnPending(source.afterId, batchSize);
        // Orders that only waited for a lock are above suspicion, however often they were looked at.
        const deliveries = source.first ? await deliveriesOf(group, entries) : new Map<string, number>();
        this.plan.ownPendingRead(entries.at(-1)?.entryId);
        return { source: source.kind, epochNumber, entries, vanished: [], deliveries };
      }
      case 'CLAIM':
        return this.claim(group, source.cursor, epochNumber);
      case 'NEW': {
        const entries = await group.readNew(batchSize, wait && !detour ? source.blockMs : 0);
        if (detour) this.nextNewMs = performance.now() + DETOUR_PACE_MS;
        else if (entries.length > 0 && entries.length < batchSize) this.nextNewMs = performance.now() + PACE_MS;
        return { source: source.kind, epochNumber, entries, vanished: [], deliveries: new Map() };
      }
    }
  }

  private async pace(): Promise<void> {
    const pauseMs = this.nextNewMs - performance.now();
    if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }

  private async claim(group: GroupReader, cursor: string, epochNumber: number): Promise<ReadResult> {
    const { claimMinIdleMs, batchSize, partition } = this.options;
    const claim = await group.claimIdle(cursor, claimMinIdleMs, batchSize);
    this.plan.claimed(claim.cursor, performance.now());
    if (claim.entries.length > 0) {
      metrics.claimedEntries.inc(claim.entries.length);
      this.logger.log(`partition ${partition}: took over ${claim.entries.length} entries of silent consumers`);
    }
    await this.tidy(group);
    const deliveries = await deliveriesOf(group, claim.entries);
    return { source: 'CLAIM', epochNumber, ...claim, deliveries };
  }

  /**
   * Now and then: removes names that were silent for long and own nothing (the server checks both in the same script), and finished entries that no
   * acknowledgement removed. Never a reason to stop work.
   */
  private async tidy(group: GroupReader): Promise<void> {
    const { partition, claimMinIdleMs, name } = this.options;
    if (performance.now() < this.tidyAtMs) return;
    this.tidyAtMs = performance.now() + claimMinIdleMs;
    const minIdleMs = 2 * claimMinIdleMs;
    try {
      for (const consumer of await group.consumers()) {
        if (consumer.name === name || consumer.pending > 0 || consumer.idleMs < minIdleMs) continue;
        await this.faces.log.dropIdleConsumer(partition, consumer.name, minIdleMs);
      }
      await this.faces.log.acknowledge(partition, []);
    } catch (error) {
      this.logger.warn(`partition ${partition}: stream and names were not tidied: ${describeError(error)}`);
    }
  }

  private async ensureGroup(): Promise<void> {
    await this.faces.log.ensureGroup(this.options.partition);
    this.groupKnown = true;
  }

  private async repair(error: unknown): Promise<ReadResult> {
    const { partition } = this.options;
    this.groupKnown = false;
    this.repairs += 1;
    if (this.repairs > QUIET_REPAIRS) throw error;
    this.logger.warn(`partition ${partition}: stream or group is missing; created from the beginning`);
    await this.ensureGroup();
    const epochNumber = this.epochNumber ?? (await this.faces.orders.epochNumber(partition));
    return { source: 'OWN_PENDING', epochNumber, entries: [], vanished: [], deliveries: new Map() };
  }

  private place(): ReaderPlace {
    const { keys } = this.faces;
    return { stream: keys.stream(this.options.partition), group: keys.group, consumer: this.options.name };
  }

  private async openReader(): Promise<GroupReader> {
    const { connections } = this.faces;
    const { partition } = this.options;
    if (this.reader === undefined) {
      const place = this.place();
      const connection = connections.openBlocking(`consumer-${partition}`, place.stream);
      this.reader = { group: new GroupReader(connection, place), connection };
    }
    const { connection, group } = this.reader;
    if (await connections.whenReady(CONNECT_LIMIT_MS, [connection])) return group;
    if (this.reader?.connection === connection) this.disconnect();
    throw new Error('the consumer is not connected to Redis');
  }
}

/** True where a cluster moves the stream's slot and the stream has gone ahead: the command connection follows it, the stream's own cannot. */
function isOnItsWay(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('ASK ');
}

async function deliveriesOf(group: GroupReader, entries: readonly RawEntry[]): Promise<Map<string, number>> {
  return entries.length === 0 ? new Map() : group.deliveries(entries.map(({ entryId }) => entryId));
}
