import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ProductNode } from './product-node.js';
import { PostgresServer, RedisServer } from './store-servers.js';
import { TcpProxy } from './tcp-proxy.js';
import { mountSmallDisk, unmountSmallDisk } from './small-disk.js';
import { until } from '../support/waiting.js';

/** Signs the tokens of every buyer of a run. */
export const FAULT_SECRET = 'the secret of the fault harness, 32 bytes and more';

/** What a scenario needs of its world; worlds with the same needs are used again. */
export interface WorldNeeds {
  /** Settings of API processes and workers that win over the harness's short ones. */
  readonly settings?: Readonly<Record<string, string>>;
  readonly redisArgs?: readonly string[];
  readonly replica?: boolean;
  /** The API processes consume, too. */
  readonly apisConsume?: boolean;
  /** Two workers with this one name. */
  readonly workerName?: string;
  /** The Redis data lies on a file system of this size (needs root and Linux). */
  readonly redisDiskMb?: number;
}

/** Short where that only saves time. */
const SETTINGS = {
  NODE_ENV: 'production',
  AUTH_JWT_SECRET: FAULT_SECRET,
  CONSUMER_BLOCK_MS: '500',
  CONSUMER_BATCH_SIZE: '200',
  CLAIM_MIN_IDLE_MS: '3000',
  SHUTDOWN_TIMEOUT_MS: '5000',
  DB_POOL_SIZE: '5',
  LOG_LEVEL: 'warn',
};

/** A node together with its own links to the stores. */
export interface LinkedNode {
  readonly node: ProductNode;
  readonly redis: TcpProxy;
  readonly database: TcpProxy;
}

/** Real processes as production runs them: two API processes, two workers, Redis (with a replica where asked), PostgreSQL; a proxy on each link. */
export class World {
  readonly apis: LinkedNode[] = [];
  readonly workers: LinkedNode[] = [];
  replica: RedisServer | undefined;
  /** From the replica to its primary. */
  replicaLink: TcpProxy | undefined;

  private constructor(
    readonly dir: string,
    readonly needs: WorldNeeds,
    /** The primary of this moment. */
    public redis: RedisServer,
    readonly postgres: PostgresServer,
  ) {
    process.once('exit', this.endAtOnce);
  }

  /** Nothing may outlive this process, however it ends. */
  private readonly endAtOnce = (): void => {
    for (const { node } of this.nodes) node.signal('SIGKILL');
    for (const store of [this.redis, this.replica, this.postgres]) store?.signal('SIGKILL');
    this.removeFolder();
  };

  private removeFolder(): void {
    if (this.needs.redisDiskMb !== undefined) unmountSmallDisk(join(this.dir, 'redis'));
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 5 });
  }

  static async start(root: string, needs: WorldNeeds = {}, nodes = { apis: 2, workers: 2 }): Promise<World> {
    const dir = mkdtempSync(join(tmpdir(), 'flash-sale-faults-'));
    chmodSync(dir, 0o755);
    mkdirSync(join(dir, 'logs'));
    if (needs.redisDiskMb !== undefined) mountSmallDisk(join(dir, 'redis'), needs.redisDiskMb);
    const [redis, postgres] = await Promise.all([
      RedisServer.start(join(dir, 'redis'), needs.redisArgs),
      PostgresServer.start(join(dir, 'postgres', 'data')),
    ]);
    const world = new World(dir, needs, redis, postgres);
    if (needs.replica === true) await world.addReplica();
    try {
      for (let nth = 1; nth <= nodes.apis; nth += 1) world.apis.push(await world.addNode(root, 'seckill', nth));
      for (let nth = 1; nth <= nodes.workers; nth += 1) world.workers.push(await world.addNode(root, 'worker', nth));
      await world.ready();
    } catch (error) {
      await world.stop();
      throw error;
    }
    return world;
  }

  get nodes(): LinkedNode[] {
    return [...this.apis, ...this.workers];
  }

  /** Resolves when purchases are answered and orders move, on every node. */
  async ready(limitMs?: number): Promise<void> {
    await Promise.all([
      ...this.apis.map(({ node }) => node.ready('/health/ready', limitMs)),
      ...this.workers.map(({ node }) => node.ready('/health/orders', limitMs)),
    ]);
  }

  /** Heals every link, thaws what is frozen, starts what is down. Does not wait until it works again. */
  async heal(): Promise<void> {
    for (const { redis, database, node } of this.nodes) {
      redis.heal();
      database.heal();
      node.signal('SIGCONT');
    }
    this.replicaLink?.heal();
    for (const server of [this.redis, ...(this.replica === undefined ? [] : [this.replica])]) {
      server.thaw();
      if (!server.isRunning) await server.up();
    }
    if (!(await this.answersSql())) {
      await this.postgres.down('SIGQUIT');
      await this.postgres.up();
    }
    if (this.needs.replica === true && this.replica === undefined) await this.addReplica();
    for (const { node } of this.nodes) if (!node.isRunning) node.up();
  }

  /** A second Redis that follows the first. */
  async addReplica(): Promise<RedisServer> {
    this.replicaLink?.close();
    this.replicaLink = await TcpProxy.open(this.redis.port);
    const args = ['--replicaof', '127.0.0.1', String(this.replicaLink.port), ...(this.needs.redisArgs ?? [])];
    this.replica = await RedisServer.start(join(this.dir, `redis-${Date.now()}`), args);
    await this.replicaInStep();
    return this.replica;
  }

  /** Resolves when the replica has all that the primary has. */
  async replicaInStep(): Promise<void> {
    await until(
      'the replica follows',
      () => this.redis.with(async (redis) => /slave0:.*state=online/.test(await redis.info('replication'))),
      30_000,
    );
    await until(
      'the replica confirms',
      () => this.redis.with(async (redis) => (await redis.wait(1, 500)) >= 1),
      30_000,
    );
  }

  /** The replica becomes the primary, and every link leads to it; the former primary must be dead or cut off. */
  async promoteReplica(): Promise<void> {
    const { replica } = this;
    if (replica === undefined) throw new Error('there is no replica');
    await replica.with((redis) => redis.call('REPLICAOF', 'NO', 'ONE'));
    replica.use(this.needs.redisArgs ?? []);
    this.replica = undefined;
    this.redis = replica;
    for (const { redis } of this.nodes) redis.retarget(replica.port);
  }

  /** Every link leads to this server again, which has lived all the time. */
  returnTo(redis: RedisServer): void {
    this.redis = redis;
    for (const linked of this.nodes) linked.redis.retarget(redis.port);
  }

  async stop(): Promise<void> {
    await Promise.all(this.nodes.map(({ node }) => node.down('SIGKILL')));
    for (const { redis, database } of this.nodes) {
      redis.close();
      database.close();
    }
    this.replicaLink?.close();
    await Promise.all([this.redis.down(), this.replica?.down(), this.postgres.down('SIGQUIT')]);
    this.removeFolder();
    process.removeListener('exit', this.endAtOnce);
  }

  private async answersSql(): Promise<boolean> {
    try {
      await this.postgres.query('SELECT 1');
      return true;
    } catch {
      return false;
    }
  }

  private async addNode(root: string, kind: 'seckill' | 'worker', nth: number): Promise<LinkedNode> {
    const redis = await TcpProxy.open(this.redis.port);
    const database = await TcpProxy.open(this.postgres.port);
    const { needs } = this;
    const node = await ProductNode.spawn({
      name: `${kind === 'seckill' ? 'api' : 'worker'}-${nth}`,
      kind,
      root,
      logDir: join(this.dir, 'logs'),
      env: {
        ...SETTINGS,
        REDIS_URL: `redis://127.0.0.1:${redis.port}`,
        DATABASE_URL: this.postgres.url(database.port),
        ...(kind === 'seckill' ? { CONSUMER_ENABLED: String(needs.apisConsume === true) } : {}),
        ...(kind === 'worker' && needs.workerName !== undefined ? { CONSUMER_NAME: needs.workerName } : {}),
        ...needs.settings,
      },
    });
    return { node, redis, database };
  }
}
