import { Inject, Injectable } from '@nestjs/common';
import { SETTINGS, type Settings } from '#config';
import { Database } from '#database';
import type { StreamStats } from '#sale-register';
import { type PartitionStatus, StreamConsumer } from '#stream-consumer';
import { type HealthPart, type HealthReport, healthReport, worst } from './health-report.js';
import { SharedProbe } from './shared-probe.js';
import { StreamSampler } from './stream-sampler.js';

const DATABASE_LIMIT_MS = 1000;
/** A loop turns at least once per block; a long transaction may hold it a little. */
const SILENT_MARGIN_MS = 15_000;
const LEAST_AGE_LIMIT_MS = 30_000;

/**
 * Whether orders move from the stream into the database. Limits: an entry may wait undelivered or pending for
 * max(CLAIM_MIN_IDLE_MS, 30 s) + 2 x CONSUMER_BLOCK_MS (the time in which a living consumer takes over from a dead one); a loop may be silent for
 * CONSUMER_BLOCK_MS + 15 s; another consumer group may hold back MAX_BACKLOG entries.
 */
@Injectable()
export class OrdersHealth {
  private readonly startedMs = Date.now();
  private readonly databaseProbe: SharedProbe<void>;
  readonly ageLimitMs: number;
  readonly silentLimitMs: number;

  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly database: Database,
    private readonly consumer: StreamConsumer,
    private readonly sampler: StreamSampler,
  ) {
    const { claimMinIdleMs, blockMs } = settings.consumer;
    this.ageLimitMs = Math.max(claimMinIdleMs, LEAST_AGE_LIMIT_MS) + 2 * blockMs;
    this.silentLimitMs = blockMs + SILENT_MARGIN_MS;
    this.databaseProbe = new SharedProbe(() => this.pingDatabase(), DATABASE_LIMIT_MS + 100);
  }

  /** Never rejects; answers within about a second, whatever is away. */
  async report(): Promise<HealthReport> {
    const [database, stream] = await Promise.all([this.databasePart(), this.streamPart()]);
    return healthReport({ database, consumer: this.consumerPart(), stream });
  }

  /** The database alone. Never rejects. */
  async databasePart(): Promise<HealthPart> {
    const reading = await this.databaseProbe.read();
    return reading.ok ? { status: 'ok' } : { status: 'down', reason: reading.reason };
  }

  private async pingDatabase(): Promise<void> {
    const status = this.database.status();
    if (!status.ready) throw new Error(status.reason);
    await this.database.ping(DATABASE_LIMIT_MS);
  }

  private consumerPart(): HealthPart {
    if (!this.settings.consumer.enabled) return { status: 'ok', enabled: false };
    const { running, consumers } = this.consumer.status();
    if (!running) return { status: 'down', reason: 'the consumer does not run' };
    const partitions = consumers.map((status) => this.loopPart(status));
    const bad = partitions.find(({ status }) => status !== 'ok');
    return {
      status: worst(partitions.map(({ status }) => status)),
      ...(bad?.reason === undefined ? {} : { reason: `partition ${String(bad['partition'])}: ${bad.reason}` }),
      partitions,
    };
  }

  private loopPart(loop: PartitionStatus): HealthPart {
    const { partition, name, inHand, lastError, consecutiveFailures } = loop;
    const facts = { partition, name, inHand, consecutiveFailures };
    const nowMs = Date.now();
    const silentMs = nowMs - (loop.lastLoopMs ?? this.startedMs);
    if (silentMs > this.silentLimitMs) return { status: 'down', reason: `silent for ${silentMs} ms`, ...facts };
    if (consecutiveFailures === 0) return { status: 'ok', ...facts };
    const stuckMs = nowMs - (loop.lastSuccessMs ?? this.startedMs);
    const reason = `${consecutiveFailures} failed turns in a row, ${stuckMs} ms without success: ${lastError ?? 'unknown'}`;
    return { status: stuckMs > this.silentLimitMs ? 'down' : 'degraded', reason, ...facts };
  }

  private async streamPart(): Promise<HealthPart> {
    const reading = await this.sampler.read();
    if (!reading.ok) return { status: 'down', reason: `the stream cannot be read: ${reading.reason}` };
    const partitions = reading.value.map((stats) => this.partitionPart(stats));
    const bad = partitions.find(({ status }) => status !== 'ok');
    return {
      status: worst(partitions.map(({ status }) => status)),
      ...(bad?.reason === undefined ? {} : { reason: `partition ${String(bad['partition'])}: ${bad.reason}` }),
      ageLimitMs: this.ageLimitMs,
      partitions,
    };
  }

  private partitionPart(stats: StreamStats): HealthPart {
    const { partition, length, lag, pending, oldestPendingMs, oldestUndeliveredMs, deadLetters } = stats;
    const facts = { partition, length, lag, pending, oldestPendingMs, oldestUndeliveredMs, deadLetters };
    const reason =
      this.tooOld('undelivered', oldestUndeliveredMs) ??
      this.tooOld('pending', oldestPendingMs) ??
      this.heldBack(stats);
    return reason === undefined ? { status: 'ok', ...facts } : { status: 'down', reason, ...facts };
  }

  private tooOld(what: string, ageMs: number | undefined): string | undefined {
    if (ageMs === undefined || ageMs <= this.ageLimitMs) return undefined;
    return `the oldest ${what} entry is ${ageMs} ms old (limit ${this.ageLimitMs} ms)`;
  }

  private heldBack({ foreignGroups }: StreamStats): string | undefined {
    const { maxBacklog } = this.settings.admission;
    const held = foreignGroups.find(({ lag, pending }) => (lag ?? 0) + pending > maxBacklog);
    if (held === undefined) return undefined;
    return `group ${held.name} holds back ${(held.lag ?? 0) + held.pending} entries (limit ${maxBacklog}): consume or destroy it`;
  }
}
