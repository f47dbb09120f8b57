import type { Settings } from '#config';
import { RedisConnections } from '#redis';
import { TestRedis } from '../../../../test/support/services.js';
import { Admission } from '../admission.js';
import { EpochRegister } from '../epoch-register.js';
import { KeySpace } from '../key-space.js';
import { OrderLog } from '../order-log.js';
import type { AdmissionOutcome, SaleTerms } from '../outcomes.js';
import { RebuildRegister } from '../rebuild-register.js';
import { SaleDirectory } from '../sale-directory.js';
import { SaleRegister } from '../sale-register.js';
import { SequenceLease } from '../sequence-lease.js';

export interface RigSettings {
  readonly url?: string;
  readonly clusterNodes?: Settings['redis']['clusterNodes'];
  readonly keyPrefix?: string;
  readonly maxBacklog?: number;
  readonly durability?: 'local' | 'replica';
  readonly requestTimeoutMs?: number;
  readonly streamName?: string;
}

/** Settings of a test, all but the given ones as by default. */
export function rigSettings(given: RigSettings): Settings {
  return {
    mode: 'development',
    http: { host: '127.0.0.1', port: 3000, requestTimeoutMs: given.requestTimeoutMs ?? 1500 },
    apiProcesses: 1,
    redis: { url: given.url, clusterNodes: given.clusterNodes, keyPrefix: given.keyPrefix ?? '' },
    database: { url: 'postgres://127.0.0.1/none', poolSize: 1 },
    auth: { jwtSecret: 'x'.repeat(32), jwksUrl: undefined },
    stream: { name: given.streamName ?? 'stream.orders', group: 'g1', partitions: 1 },
    consumer: {
      enabled: true,
      name: undefined,
      batchSize: 1000,
      blockMs: 2000,
      claimMinIdleMs: 30_000,
      maxDeliveries: 5,
    },
    admission: {
      durability: given.durability ?? 'local',
      maxBacklog: given.maxBacklog ?? 1_000_000,
      maxInFlight: 10_000,
    },
    hmdp: { enabled: false },
    shutdownTimeoutMs: 10_000,
    logLevel: 'info',
  };
}

/** All faces of the register on one set of connections, wired as the module wires them. */
export class RegisterRig {
  readonly connections: RedisConnections;
  readonly keys: KeySpace;
  readonly register: SaleRegister;
  readonly log: OrderLog;
  readonly epoch: EpochRegister;
  readonly rebuild: RebuildRegister;
  readonly directory: SaleDirectory;
  readonly lease: SequenceLease;

  constructor(readonly settings: Settings) {
    this.connections = new RedisConnections(settings);
    this.keys = new KeySpace(settings);
    this.log = new OrderLog(this.connections, this.keys);
    this.register = new SaleRegister(
      this.connections,
      this.keys,
      new Admission(this.connections, this.keys, this.log, settings),
    );
    this.epoch = new EpochRegister(this.connections, this.keys);
    this.rebuild = new RebuildRegister(this.connections, this.keys);
    this.directory = new SaleDirectory(this.connections, this.keys);
    this.lease = new SequenceLease(this.connections, this.keys);
  }

  static async connect(given: RigSettings): Promise<RegisterRig> {
    const rig = new RegisterRig(rigSettings(given));
    if (!(await rig.connections.whenReady(10_000))) throw new Error('Redis did not become ready');
    return rig;
  }

  get redis(): RedisConnections['command'] {
    return this.connections.command;
  }

  close(): void {
    this.connections.onApplicationShutdown();
  }

  /** Opens the partition without any sale in it. Resolves to the epoch's value. */
  async openEpoch(partition = 0): Promise<string> {
    const state = await this.epoch.state(partition);
    if (state.kind === 'OPEN') return state.value;
    const begun = await this.epoch.begin(partition, 'testtoken', 'value' in state ? state.value : undefined);
    if (begun.kind !== 'BEGUN') throw new Error(`begin: ${begun.kind}`);
    const opened = await this.epoch.open(partition, begun.value, []);
    if (opened.kind !== 'OPENED') throw new Error(`open: ${opened.kind}`);
    return opened.value;
  }

  /** Puts a running sale of `units` up. */
  async publish(voucherId: string, units: number, terms: Partial<SaleTerms> = {}, partition = 0): Promise<void> {
    const window = { beginMs: Date.now() - 3_600_000, endMs: Date.now() + 3_600_000 };
    const outcome = await this.register.publish(partition, { voucherId, units, unitsVersion: 1, ...window, ...terms });
    if (outcome.kind !== 'PUBLISHED') throw new Error(`publish: ${outcome.kind}`);
  }

  /** One purchase, alone in its call. */
  async buy(voucherId: string, userId: string, orderId: string, timeLeftMs = 5000): Promise<AdmissionOutcome> {
    return (await this.register.admit(0, [{ voucherId, userId, orderId }], timeLeftMs))[0] as AdmissionOutcome;
  }

  /** Everything that one voucher has in Redis, and the stream's entries of it. */
  async snapshot(voucherId: string, partition = 0): Promise<Snapshot> {
    const { stock, marks, sale } = this.keys.saleKeys(partition, voucherId);
    const entries = await this.redis.xrange(this.keys.stream(partition), '-', '+');
    return {
      stock: await this.redis.get(stock),
      marks: await this.redis.hgetall(marks),
      sale: await this.redis.hgetall(sale),
      entries: entries.map(([, flat]) => flat).filter((flat) => flat[3] === voucherId),
    };
  }

  /** A consumer that reads up to `count` new entries and acknowledges nothing; resolves to their ids. */
  async read(consumer: string, count: number, partition = 0): Promise<string[]> {
    const reply = (await this.redis.xreadgroup(
      'GROUP',
      this.keys.group,
      consumer,
      'COUNT',
      count,
      'STREAMS',
      this.keys.stream(partition),
      '>',
    )) as [string, [string, string[]][]][] | null;
    return reply?.[0]?.[1].map(([entryId]) => entryId) ?? [];
  }
}

export interface Snapshot {
  readonly stock: string | null;
  readonly marks: Record<string, string>;
  readonly sale: Record<string, string>;
  readonly entries: string[][];
}

/** A real Redis and a rig on it with open partition 0. */
export async function startRig(
  given: RigSettings = {},
  redisArgs: string[] = [],
): Promise<{ server: TestRedis; rig: RegisterRig; stop: () => Promise<void> }> {
  const server = await TestRedis.start(redisArgs);
  const rig = await RegisterRig.connect({ url: server.url, ...given });
  await rig.openEpoch();
  const stop = async () => {
    rig.close();
    await server.destroy();
  };
  return { server, rig, stop };
}
