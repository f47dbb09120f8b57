import { Injectable, Logger } from '@nestjs/common';
import { Cluster, type Redis } from 'ioredis';
import { durable } from './metrics.js';
import { RedisConnections } from './redis-connections.js';
import { guardRedis } from './redis-errors.js';

/** When a write that was answered is on disk: before the answer, within about a second, not by promise; or the server does not say. */
export type DurabilityLevel = 'always' | 'everysec' | 'none' | 'unknown';

/** How durable Redis was when it was read. In a cluster: its weakest primary. */
export interface Durability {
  readonly level: DurabilityLevel;
  /** True where keys may be evicted (maxmemory-policy other than noeviction), undefined where the server does not say. */
  readonly mayEvict: boolean | undefined;
  readonly maxmemoryPolicy: string | undefined;
  /** Replicas that are connected now: what WAIT can count on. Undefined where INFO is refused. */
  readonly replicas: number | undefined;
  /** False where the last write to the append-only file or the last save failed. */
  readonly writesToDisk: boolean | undefined;
}

const WEAKEST_FIRST: readonly DurabilityLevel[] = ['none', 'unknown', 'everysec', 'always'];

/** Reads how durable Redis is, for health, a metric and one log line per change. */
@Injectable()
export class DurabilityProbe {
  private readonly logger = new Logger(DurabilityProbe.name);
  private known: Durability | undefined;

  constructor(private readonly connections: RedisConnections) {}

  /** What the last `read` found; undefined before the first. */
  get last(): Durability | undefined {
    return this.known;
  }

  /** Asks the server (every primary of a cluster) now. Throws RedisUnavailableError where it does not answer in time. */
  async read(): Promise<Durability> {
    const { command } = this.connections;
    const nodes = command instanceof Cluster ? command.nodes('master') : [command];
    const each = await guardRedis(Promise.all(nodes.map(readNode)));
    const found = each.length === 0 ? UNKNOWN : each.reduce(weaker);
    this.report(found);
    return found;
  }

  private report(found: Durability): void {
    const before = this.known;
    this.known = found;
    durable.reset();
    durable.set({ level: found.level, may_evict: String(found.mayEvict ?? 'unknown') }, 1);
    if (before?.level === found.level && before.mayEvict === found.mayEvict) return;
    const eviction =
      found.mayEvict === false ? 'never evicts' : `maxmemory-policy ${found.maxmemoryPolicy ?? 'unknown'}`;
    const line = `Redis durability: ${found.level}; ${eviction}; replicas: ${found.replicas ?? 'unknown'}`;
    if (found.level === 'always' && found.mayEvict === false) this.logger.log(line);
    else this.logger.warn(`${line}. Accepted orders may be lost with this Redis.`);
  }
}

const UNKNOWN: Durability = {
  level: 'unknown',
  mayEvict: undefined,
  maxmemoryPolicy: undefined,
  replicas: undefined,
  writesToDisk: undefined,
};

async function readNode(node: Redis): Promise<Durability> {
  const [config, info] = await Promise.all([readConfig(node), readInfo(node)]);
  const appendOnly = config.get('appendonly') ?? ({ '1': 'yes', '0': 'no' } as const)[info.get('aof_enabled') ?? ''];
  const policy = config.get('maxmemory-policy') ?? info.get('maxmemory_policy');
  const replicas = info.get('connected_slaves');
  const writes = [info.get('aof_last_write_status'), info.get('rdb_last_bgsave_status')];
  return {
    level: levelOf(appendOnly, config.get('appendfsync')),
    mayEvict: policy === undefined ? undefined : policy !== 'noeviction',
    maxmemoryPolicy: policy,
    replicas: replicas === undefined ? undefined : Number(replicas),
    writesToDisk: info.size === 0 ? undefined : writes.every((status) => status === undefined || status === 'ok'),
  };
}

function levelOf(appendOnly: string | undefined, fsync: string | undefined): DurabilityLevel {
  if (appendOnly === 'no') return 'none';
  if (appendOnly === undefined || fsync === undefined) return 'unknown';
  return fsync === 'always' || fsync === 'everysec' ? fsync : 'none';
}

/** Empty where the server refuses CONFIG (managed services, restricted users). */
async function readConfig(node: Redis): Promise<Map<string, string>> {
  const flat = await node.call('CONFIG', 'GET', 'append*', 'maxmemory-policy').catch(emptyWhereRefused);
  const found = new Map<string, string>();
  if (Array.isArray(flat))
    for (let at = 0; at + 1 < flat.length; at += 2) found.set(String(flat[at]), String(flat[at + 1]));
  return found;
}

async function readInfo(node: Redis): Promise<Map<string, string>> {
  const sections = ['persistence', 'replication', 'memory'];
  const texts = await Promise.all(sections.map((section) => node.call('INFO', section).catch(emptyWhereRefused)));
  const lines = texts.filter((text) => typeof text === 'string').flatMap((text) => text.split('\r\n'));
  return new Map(
    lines
      .filter((line) => line.includes(':'))
      .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]),
  );
}

function emptyWhereRefused(error: unknown): undefined {
  if (error instanceof Error && /^(NOPERM|ERR)/.test(error.message)) return undefined;
  throw error;
}

function weaker(a: Durability, b: Durability): Durability {
  const level = WEAKEST_FIRST.indexOf(a.level) <= WEAKEST_FIRST.indexOf(b.level) ? a.level : b.level;
  const evicting = [a, b].find((each) => each.mayEvict !== false) ?? a;
  return {
    level,
    mayEvict: a.mayEvict === true || b.mayEvict === true ? true : evicting.mayEvict,
    maxmemoryPolicy: evicting.maxmemoryPolicy,
    replicas: a.replicas === undefined || b.replicas === undefined ? undefined : Math.min(a.replicas, b.replicas),
    writesToDisk: a.writesToDisk === false || b.writesToDisk === false ? false : (a.writesToDisk ?? b.writesToDisk),
  };
}
