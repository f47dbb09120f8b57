import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { RedisCluster } from '../../test/cluster/redis-cluster.js';
import { type Product, startProduct } from '../services/product.mjs';
import { closedLoad, openLoad } from './load.js';
import { answersWith, type Sample, sampleOf, startCpu } from './measurement.js';
import { openSale, purchasesOf, until } from './sale.js';
import { apiOf, type Stage } from './stage.js';
import { startWorker, type WorkerProcess } from './worker-process.js';

const CONNECTIONS = 256;
const PARTITIONS = 8;
const PREFIX = 'side:';

export type SideName = 'single node' | 'cluster';

/** The product on one kind of Redis, with a database of its own. */
interface Side {
  readonly product: Product;
  readonly worker: WorkerProcess;
  readonly sql: pg.Client;
}

/** One product on a single Redis and one on a cluster of three primaries (each with its replica), both with 8 partitions, side by side. */
export class ClusterPair {
  private readonly stops: (() => Promise<unknown>)[] = [];
  private readonly sides = new Map<SideName, Side>();

  private constructor(private readonly stage: Stage) {}

  static async open(stage: Stage, signal: AbortSignal): Promise<ClusterPair> {
    const pair = new ClusterPair(stage);
    try {
      await pair.start(signal);
      return pair;
    } catch (error) {
      await pair.close();
      throw error;
    }
  }

  /**
   * Purchases of 8 vouchers, stored while they come; the CPU is that of our processes alone. `rate`: so many are sent in a second, where it is not given as
   * many as are answered. What one costs depends on how many share a batch, so only equal rates can be compared.
   */
  async measure(name: SideName, count: number, rate?: number): Promise<Sample> {
    const { product, worker, sql } = this.sides.get(name) as Side;
    const { stage } = this;
    const each = Math.ceil(count / PARTITIONS);
    const vouchers: string[] = [];
    for (let nth = 0; nth < PARTITIONS; nth += 1)
      vouchers.push(await openSale({ apiUrl: product.url, secret: stage.secret }, each));
    const requests = purchasesOf(stage.secret, vouchers, each * PARTITIONS);
    const api = apiOf(product);
    const cpu = startCpu(stage, { api: api.pid, worker: worker.pid });
    const load =
      rate === undefined
        ? await closedLoad(api.port, CONNECTIONS, requests)
        : await openLoad(api.port, CONNECTIONS, requests, rate);
    const accepted = answersWith(202, load, `purchases, ${name}`);
    await until(`the orders of the ${name} are stored`, async () => {
      const { rows } = await sql.query<{ count: string }>(
        'SELECT count(*) FROM tb_voucher_order WHERE voucher_id = ANY ($1::bigint[])',
        [vouchers],
      );
      return Number(rows[0]?.count) === accepted;
    });
    return sampleOf(accepted, load.wallMs, cpu(), load);
  }

  async close(): Promise<void> {
    for (const stop of this.stops.reverse()) await stop();
  }

  private async start(signal: AbortSignal): Promise<void> {
    const { stage } = this;
    // The same server program as everywhere here.
    process.env['REDIS_SERVER'] = stage.redisBinary;
    const cluster = await RedisCluster.start(join(stage.dir, 'cluster'));
    this.stops.push(() => cluster.stop());
    await this.startSide('single node', { REDIS_URL: stage.redisUrl, REDIS_KEY_PREFIX: PREFIX }, signal);
    await this.startSide('cluster', { REDIS_CLUSTER_NODES: cluster.nodes }, signal);
  }

  private async startSide(name: SideName, redis: Record<string, string>, signal: AbortSignal): Promise<void> {
    const { stage } = this;
    const database = `bench_${name.replace(' ', '_')}`;
    await stage.sql.query(`CREATE DATABASE ${database}`);
    const databaseUrl = new URL(stage.databaseUrl);
    databaseUrl.pathname = `/${database}`;
    const dir = join(stage.dir, database);
    mkdirSync(dir);
    const env = { ...redis, LOG_LEVEL: 'warn', STREAM_PARTITIONS: String(PARTITIONS) };
    const product = await startProduct({
      dataDir: dir,
      ...(redis['REDIS_URL'] === undefined ? {} : { redisUrl: redis['REDIS_URL'] }),
      ...(redis['REDIS_CLUSTER_NODES'] === undefined ? {} : { redisClusterNodes: redis['REDIS_CLUSTER_NODES'] }),
      databaseUrl: databaseUrl.href,
      secret: stage.secret,
      signal,
      env: { ...env, CONSUMER_ENABLED: 'false' },
    });
    this.stops.push(() => product.stop());
    const worker = await startWorker({ ...env, DATABASE_URL: databaseUrl.href }, join(dir, 'worker.log'));
    this.stops.push(() => worker.stop());
    const sql = new pg.Client({ connectionString: databaseUrl.href });
    await sql.connect();
    this.stops.push(() => sql.end());
    this.sides.set(name, { product, worker, sql });
  }
}
