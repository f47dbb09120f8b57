import { join } from 'node:path';
import { Cluster } from 'ioredis';
import { RedisServer } from '../faults/store-servers.js';
import { pause, until } from '../support/waiting.js';

const SLOTS = 16_384;
const NODE_TIMEOUT_MS = 2_000;
const FORM_LIMIT_MS = 60_000;
/** A large hash is moved whole, and holds up both servers meanwhile. */
const MIGRATE_LIMIT_MS = 60_000;
/** As a supervisor would: a killed node is started again so long after its end. */
export const RESTART_AFTER_MS = 2_000;

/** What CLUSTER NODES says of one node. */
export interface NodeView {
  readonly id: string;
  readonly port: number;
  readonly role: 'primary' | 'replica';
  readonly primaryId: string | undefined;
  readonly failed: boolean;
  readonly ranges: readonly (readonly [number, number])[];
}

/** Three primaries and three replicas: six real redis-server processes, joined by cluster commands alone. */
export class RedisCluster {
  private constructor(readonly servers: readonly RedisServer[]) {}

  /** `nodeTimeoutMs`: a node that is silent for so long is taken for dead. */
  static async start(dir: string, nodeTimeoutMs = NODE_TIMEOUT_MS): Promise<RedisCluster> {
    const servers: RedisServer[] = [];
    for (let nth = 0; nth < 6; nth += 1) {
      servers.push(await RedisServer.start(join(dir, `redis-${nth}`), nodeArgs(nodeTimeoutMs)));
    }
    const cluster = new RedisCluster(servers);
    try {
      await cluster.form();
    } catch (error) {
      await cluster.stop();
      throw error;
    }
    return cluster;
  }

  get nodes(): string {
    return this.servers.map(({ port }) => `127.0.0.1:${port}`).join(',');
  }

  /** A client of the harness's own. */
  connect(): Cluster {
    const client = new Cluster(
      this.servers.map(({ port }) => ({ host: '127.0.0.1', port })),
      { redisOptions: { maxRetriesPerRequest: 3 }, slotsRefreshTimeout: 2000, slotsRefreshInterval: 1000 },
    );
    client.on('error', () => undefined);
    client.on('node error', () => undefined);
    return client;
  }

  /** The cluster as a node sees it that is up and is not frozen. */
  async view(asked: RedisServer): Promise<NodeView[]> {
    const text = await asked.with((redis) => redis.call('CLUSTER', 'NODES'));
    return String(text).trim().split('\n').map(parseNode);
  }

  /** The server that holds the slot, as `asked` sees it, and its replicas. */
  async ownerOf(slot: number, asked = this.anyServer()): Promise<{ primary: RedisServer; replicas: RedisServer[] }> {
    const nodes = await this.view(asked);
    const owner = nodes.find(({ ranges }) => ranges.some(([from, to]) => from <= slot && slot <= to));
    if (owner === undefined) throw new Error(`nobody holds slot ${slot}`);
    const replicas = nodes.filter(({ primaryId, failed }) => primaryId === owner.id && !failed);
    return { primary: this.server(owner.port), replicas: replicas.map(({ port }) => this.server(port)) };
  }

  /** Resolves when the slot's primary, as the other servers see it, has a replica that receives its writes. */
  async untilReplicated(slot: number, except: readonly RedisServer[] = []): Promise<void> {
    await until(
      `slot ${slot} has a primary with a replica`,
      async () => {
        const { primary } = await this.ownerOf(slot, this.anyServer(except));
        if (except.includes(primary)) return false;
        return (await primary.with((redis) => redis.info('replication'))).includes('state=online');
      },
      FORM_LIMIT_MS,
    );
  }

  /** Kills the server and starts it again after a supervisor's pause. */
  async killAndRestart(server: RedisServer): Promise<void> {
    await server.down('SIGKILL');
    await pause(RESTART_AFTER_MS);
    await server.up();
  }

  /** Moves the slot with all its keys to another primary, a few keys at a time, as resharding tools do. */
  async moveSlot(slot: number, to: RedisServer): Promise<void> {
    const { primary: from } = await this.ownerOf(slot);
    const nodes = await this.view(from);
    const idOf = (server: RedisServer) => nodes.find(({ port }) => port === server.port)?.id ?? '';
    await to.with((redis) => redis.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', idOf(from)));
    await from.with(async (redis) => {
      await redis.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', idOf(to));
      for (;;) {
        const keys = (await redis.call('CLUSTER', 'GETKEYSINSLOT', slot, 3)) as string[];
        if (keys.length === 0) break;
        await redis.call('MIGRATE', '127.0.0.1', to.port, '', 0, MIGRATE_LIMIT_MS, 'KEYS', ...keys);
        await pause(20);
      }
    });
    for (const server of [to, from])
      await server.with((redis) => redis.call('CLUSTER', 'SETSLOT', slot, 'NODE', idOf(to)));
  }

  anyServer(except: readonly RedisServer[] = []): RedisServer {
    const found = this.servers.find((server) => server.isRunning && !except.includes(server));
    if (found === undefined) throw new Error('no node of the cluster is running');
    return found;
  }

  async stop(): Promise<void> {
    for (const server of this.servers) server.thaw();
    await Promise.all(this.servers.map((server) => server.down('SIGKILL')));
  }

  private server(port: number): RedisServer {
    const found = this.servers.find((server) => server.port === port);
    if (found === undefined) throw new Error(`no server of this cluster listens on ${port}`);
    return found;
  }

  private async form(): Promise<void> {
    const [first] = this.servers as [RedisServer];
    for (const [nth, server] of this.servers.entries()) {
      await server.with(async (redis) => {
        if (nth < 3) {
          const [from, to] = [Math.ceil((nth * SLOTS) / 3), Math.ceil(((nth + 1) * SLOTS) / 3) - 1];
          await redis.call('CLUSTER', 'ADDSLOTSRANGE', from, to);
        }
        await redis.call('CLUSTER', 'SET-CONFIG-EPOCH', nth + 1);
        if (nth > 0) await redis.call('CLUSTER', 'MEET', '127.0.0.1', first.port);
      });
    }
    const everyServer = (what: string, fits: (nodes: NodeView[]) => boolean) =>
      until(
        what,
        async () => (await Promise.all(this.servers.map((server) => this.view(server)))).every(fits),
        FORM_LIMIT_MS,
        100,
      );
    await everyServer('six nodes know each other', (nodes) => nodes.length === 6 && nodes.every(({ id }) => id !== ''));
    for (let nth = 3; nth < 6; nth += 1) {
      const server = this.servers[nth] as RedisServer;
      const primary = this.servers[nth - 3] as RedisServer;
      const id = await primary.with((redis) => redis.call('CLUSTER', 'MYID'));
      await until(
        'a replica takes its primary',
        async () => (await server.with((redis) => redis.call('CLUSTER', 'REPLICATE', String(id)))) === 'OK',
        FORM_LIMIT_MS,
      );
    }
    await everyServer(
      'three primaries hold the slots',
      (nodes) => nodes.filter(({ role }) => role === 'replica').length === 3,
    );
    for (const slot of [0, 8000, SLOTS - 1]) await this.untilReplicated(slot);
    for (const server of this.servers)
      await until(
        'the cluster is well',
        () => server.with(async (redis) => String(await redis.call('CLUSTER', 'INFO')).includes('cluster_state:ok')),
        FORM_LIMIT_MS,
      );
  }
}

function nodeArgs(nodeTimeoutMs: number): string[] {
  return [
    ...['--cluster-enabled', 'yes', '--cluster-config-file', 'nodes.conf'],
    ...['--cluster-node-timeout', String(nodeTimeoutMs), '--cluster-require-full-coverage', 'no'],
    // A replica that was cut off for long is promoted all the same: what only a primary had was never confirmed.
    ...['--cluster-replica-validity-factor', '0', '--repl-diskless-sync-delay', '0'],
  ];
}

function parseNode(line: string): NodeView {
  const [id = '', address = '', flags = '', primaryId = '', , , , , ...slots] = line.split(' ');
  return {
    id,
    port: Number(/:(\d+)@/.exec(address)?.[1]),
    role: flags.includes('master') ? 'primary' : 'replica',
    primaryId: primaryId === '-' ? undefined : primaryId,
    failed: /fail(?!\?)|noaddr|handshake/.test(flags),
    ranges: slots
      .filter((range) => !range.startsWith('['))
      .map((range) => {
        const [from, to = from] = range.split('-');
        return [Number(from), Number(to)] as const;
      }),
  };
}
