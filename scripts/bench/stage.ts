import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Redis } from 'ioredis';
import pg from 'pg';
import { freePort } from '../services/free-port.mjs';
import { startPostgres } from '../services/postgres-server.mjs';
import { endProcess, identify } from '../services/process-identity.mjs';
import { type Product, startProduct } from '../services/product.mjs';
import { startRedis } from '../services/redis-server.mjs';
import { Phases } from '../setup/phases.mjs';
import { projectRoot } from '../setup/project-root.mjs';
import { provideRedisBinary } from '../setup/redis-binary.mjs';
import { type ChildServer, startChildServer } from './child-server.js';
import { CpuClock } from './cpu-clock.js';
import { type WorkerProcess, startWorker } from './worker-process.js';

export const PEER_SCHEMA = 'peer';
const SECRET = 'the bench signs its tokens with this secret, and with no other';
/** A worker that is frozen while orders queue up must not find, on waking, that its read took too long. */
const WORKER_ENV = { LOG_LEVEL: 'warn', CONSUMER_BLOCK_MS: '60000' };

const PROFILER = pathToFileURL(join(projectRoot, 'dist/scripts/bench/reference/profile-on-signal.js')).href;

type Stop = () => Promise<void>;

/** An API process: where it listens, and whose CPU counts. */
export interface ApiProcess {
  readonly port: number;
  readonly pid: number;
}

/** The API process of a product that has one. */
export function apiOf(product: Product): ApiProcess {
  const api = product.processes().find(({ name }) => name.includes('API'));
  if (api === undefined) throw new Error('the API process is gone');
  return { port: Number(new URL(product.url).port), pid: api.pid };
}

export interface Replicated {
  readonly api: ApiProcess;
  readonly replica: Redis;
}

/** Everything that is measured, on one Redis and one PostgreSQL, each process known by its pid. */
export class Stage {
  readonly cpu = new CpuClock();
  readonly secret = SECRET;
  private readonly children = new Map<string, Promise<ChildServer>>();
  private readonly stops: Stop[] = [];
  redis!: Redis;
  sql!: pg.Client;
  redisUrl = '';
  databaseUrl = '';
  redisPid = 0;
  postgresPid = 0;
  redisBinary = '';
  redisVersion = '';
  worker!: WorkerProcess;
  private product!: Product;
  private confirming: Promise<Replicated> | undefined;

  private constructor(
    /** Everything of this run lies below it. */
    readonly dir: string,
    private readonly isProfiled: boolean,
  ) {}

  /** Starts the stores, one API process without consumer (one that can be profiled, if asked), and one worker. */
  static async open(signal: AbortSignal, isProfiled = false): Promise<Stage> {
    const dir = mkdtempSync(join(tmpdir(), 'flash-sale-bench-'));
    chmodSync(dir, 0o711);
    const stage = new Stage(dir, isProfiled);
    try {
      await stage.startStores(signal);
      await stage.startProcesses(signal);
      return stage;
    } catch (error) {
      await stage.close();
      throw error;
    }
  }

  /** Where a profiled API process writes its profile. */
  get profileFile(): string {
    return join(this.dir, 'api.cpuprofile');
  }

  get apiUrl(): string {
    return this.product.url;
  }

  get api(): ApiProcess {
    return apiOf(this.product);
  }

  get apiPort(): number {
    return this.api.port;
  }

  get apiPid(): number {
    return this.api.pid;
  }

  /** A reference or a peer; started when it is first asked for. */
  child(name: string): Promise<ChildServer> {
    let child = this.children.get(name);
    if (child === undefined) {
      child = startChildServer(name, {
        REDIS_URL: this.redisUrl,
        DATABASE_URL: this.databaseUrl,
        AUTH_JWT_SECRET: SECRET,
        PEER_SCHEMA,
      });
      this.children.set(name, child);
    }
    return child;
  }

  /** An API process that asks a replica for each admission, and the replica, which follows nobody yet; started when first asked for. */
  replicated(): Promise<Replicated> {
    return (this.confirming ??= this.startReplicated());
  }

  private async startReplicated(): Promise<Replicated> {
    const port = await freePort();
    const server = await startRedis({ binary: this.redisBinary, dir: join(this.dir, 'replica'), port });
    this.stopLater(server.pid as number, 'SIGTERM');
    const replica = new Redis(port);
    this.stops.push(async () => void (await replica.quit().catch(() => undefined)));
    const product = await startProduct({
      dataDir: join(this.dir, 'replicated'),
      redisUrl: this.redisUrl,
      databaseUrl: this.databaseUrl,
      secret: SECRET,
      env: { LOG_LEVEL: 'warn', CONSUMER_ENABLED: 'false', ADMISSION_DURABILITY: 'replica' },
    });
    this.stops.push(() => product.stop());
    return { api: apiOf(product), replica };
  }

  /** Ends all, the API first, and removes the data. */
  async close(): Promise<void> {
    for (const child of this.children.values()) await child.then((running) => running.stop()).catch(() => undefined);
    for (const stop of this.stops.reverse()) await stop();
    rmSync(this.dir, { recursive: true, force: true });
  }

  private async startStores(signal: AbortSignal): Promise<void> {
    const binary = await provideRedisBinary({ phases: new Phases(process.stderr, { quiet: true }), signal });
    this.redisBinary = binary.path;
    this.redisVersion = binary.version;
    const redisPort = await freePort();
    const redis = await startRedis({ binary: binary.path, dir: join(this.dir, 'redis'), port: redisPort });
    this.redisPid = redis.pid as number;
    this.stopLater(this.redisPid, 'SIGTERM');
    this.redisUrl = `redis://127.0.0.1:${redisPort}`;
    this.redis = new Redis(this.redisUrl);
    this.stops.push(async () => void (await this.redis.quit().catch(() => undefined)));

    const port = await freePort();
    const dir = join(this.dir, 'postgres');
    mkdirSync(join(this.dir, 'logs'));
    // The time of each commit tells when an order was stored (R9); all who use this server pay for it alike.
    const settings = { track_commit_timestamp: 'on' };
    const logFile = join(this.dir, 'logs/postgres.log');
    const postgres = await startPostgres({ dir, port, logFile, password: 'bench', settings, signal });
    this.postgresPid = postgres.pid as number;
    this.stopLater(this.postgresPid, 'SIGINT');
    this.databaseUrl = `postgres://postgres:bench@127.0.0.1:${port}/postgres`;
    this.sql = new pg.Client({ connectionString: this.databaseUrl });
    await this.sql.connect();
    this.stops.push(() => this.sql.end());
  }

  private async startProcesses(signal: AbortSignal): Promise<void> {
    const { redisUrl, databaseUrl } = this;
    // Nothing of the surroundings reaches the product: it takes the bench's own tokens.
    delete process.env['AUTH_JWKS_URL'];
    this.product = await startProduct({
      dataDir: join(this.dir, 'product'),
      redisUrl,
      databaseUrl,
      secret: SECRET,
      signal,
      env: {
        LOG_LEVEL: 'warn',
        CONSUMER_ENABLED: 'false',
        HMDP_COMPAT: 'true',
        ADMISSION_DURABILITY: 'local',
        ...(this.isProfiled ? { NODE_OPTIONS: `--import ${PROFILER}`, PROFILE_FILE: this.profileFile } : {}),
      },
    });
    this.stops.push(() => this.product.stop());
    this.worker = await startWorker(
      { ...WORKER_ENV, REDIS_URL: redisUrl, DATABASE_URL: databaseUrl },
      join(this.dir, 'logs/worker.log'),
    );
    this.stops.push(() => this.worker.stop());
    await this.sql.query(`
      CREATE SCHEMA ${PEER_SCHEMA};
      CREATE TABLE ${PEER_SCHEMA}.tb_seckill_voucher (LIKE public.tb_seckill_voucher INCLUDING ALL);
      CREATE TABLE ${PEER_SCHEMA}.tb_voucher_order (LIKE public.tb_voucher_order INCLUDING ALL);
      CREATE TABLE ${PEER_SCHEMA}.raw_order (LIKE public.tb_voucher_order INCLUDING ALL)`);
  }

  private stopLater(pid: number, signal: NodeJS.Signals): void {
    const identity = identify(pid);
    this.stops.push(async () => {
      if (identity !== undefined) await endProcess(identity, [{ signal, limitMs: 5_000 }]);
    });
  }
}
