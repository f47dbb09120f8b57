import { Inject, Injectable } from '@nestjs/common';
import { SETTINGS, type Settings } from '#config';
import { type Durability, DurabilityProbe } from '#redis';
import { EpochRegister, type EpochState } from '#sale-register';
import { atMostDegraded, type HealthPart, type HealthReport, healthReport, worst } from './health-report.js';
import { OrdersHealth } from './orders-health.js';
import { type Reading, SharedProbe } from './shared-probe.js';
import { StreamSampler } from './stream-sampler.js';

const LIMIT_MS = 1000;
const DURABILITY_MAX_AGE_MS = 10_000;

interface PartitionEpoch {
  readonly partition: number;
  readonly state: EpochState;
}

/**
 * Whether purchases are answered truthfully: Redis answers, and every partition is open on this server's own data history. How durable Redis is,
 * the database, and whether orders move are told as well; they degrade and do not take the API out of traffic. In production a Redis that may
 * evict keys is refused: it would lose marks.
 */
@Injectable()
export class PurchasesHealth {
  private readonly epochs: SharedProbe<readonly PartitionEpoch[]>;
  private readonly durability: SharedProbe<Durability>;

  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly register: EpochRegister,
    private readonly sampler: StreamSampler,
    private readonly orders: OrdersHealth,
    durabilityProbe: DurabilityProbe,
  ) {
    this.epochs = new SharedProbe(() => this.askEpochs(), LIMIT_MS);
    this.durability = new SharedProbe(() => durabilityProbe.read(), LIMIT_MS, DURABILITY_MAX_AGE_MS);
  }

  /** Never rejects; answers within about a second, whatever is away. */
  async report(): Promise<HealthReport> {
    const [epochs, durability, orders] = await Promise.all([
      this.epochs.read(),
      this.durability.read(),
      this.orders.report(),
    ]);
    const { database, ...drain } = orders.parts;
    return healthReport({
      redis: epochs.ok ? { status: 'ok' } : { status: 'down', reason: epochs.reason },
      epoch: epochPart(epochs),
      durability: this.durabilityPart(durability),
      database: atMostDegraded(database ?? { status: 'down' }),
      orders: atMostDegraded(ordersPart(drain)),
    });
  }

  private askEpochs(): Promise<PartitionEpoch[]> {
    const ask = async (partition: number): Promise<PartitionEpoch> => ({
      partition,
      state: await this.register.state(partition),
    });
    return Promise.all(this.sampler.partitions().map(ask));
  }

  private durabilityPart(reading: Reading<Durability>): HealthPart {
    if (!reading.ok) return { status: 'degraded', level: 'unknown', reason: reading.reason };
    const { level, mayEvict, replicas, writesToDisk } = reading.value;
    const facts = { required: this.settings.admission.durability, level, mayEvict, replicas, writesToDisk };
    if (mayEvict === true) {
      const status = this.settings.mode === 'production' ? 'down' : 'degraded';
      return { status, reason: 'Redis may evict keys: set maxmemory-policy to noeviction', ...facts };
    }
    if (writesToDisk === false) return { status: 'degraded', reason: 'Redis cannot write to its disk', ...facts };
    if (level !== 'always') {
      const reason = `accepted orders may be lost with Redis: appendonly with appendfsync always is not in force (${level})`;
      return { status: 'degraded', reason, ...facts };
    }
    return { status: 'ok', ...facts };
  }
}

function epochPart(reading: Reading<readonly PartitionEpoch[]>): HealthPart {
  if (!reading.ok) return { status: 'down', reason: 'not known while Redis does not answer' };
  const partitions = reading.value.map(({ partition, state }) => ({ partition, state: state.kind }));
  const closed = reading.value.find(({ state }) => state.kind !== 'OPEN');
  if (closed === undefined) return { status: 'ok', partitions };
  return { status: 'down', reason: `partition ${closed.partition}: ${whyClosed(closed.state)}`, partitions };
}

function whyClosed(state: EpochState): string {
  switch (state.kind) {
    case 'OPEN':
      return 'open';
    case 'CLOSED':
      return 'not reconciled with the data that this Redis holds; a rebuild opens it by itself (needs the database)';
    case 'RECONCILING':
      return 'being rebuilt';
    case 'NO_HISTORY':
      return 'this server has no master_replid: it cannot say which data it holds';
    case 'NO_RIGHT':
      return 'this Redis user may not call INFO: grant it, else data loss cannot be noticed';
  }
}

function ordersPart(parts: Readonly<Record<string, HealthPart>>): HealthPart {
  const status = worst(Object.values(parts).map((part) => part.status));
  const reasons = Object.values(parts).flatMap(({ reason }) => (reason === undefined ? [] : [reason]));
  return { status, ...(reasons.length === 0 ? {} : { reason: reasons.join('; ') }) };
}
