import { mkdirSync, mkdtempSync, chmodSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Phases } from '../setup/phases.mjs';
import { provideRedisBinary } from '../setup/redis-binary.mjs';
import { Interrupted } from '../setup/start-failure.mjs';
import { startApi, urlOf, workerEntry } from './api-server.mjs';
import { dataFolder, keptSecret, rotateLog } from './data-folder.mjs';
import { freePort } from './free-port.mjs';
import { startPostgres } from './postgres-server.mjs';
import { startRedis } from './redis-server.mjs';
import { ProductParts } from './product-parts.mjs';

/**
 * @typedef {object} ProductOptions
 * @property {string} [dataDir] where Redis, PostgreSQL, secrets and logs live; kept. Not given: a temporary folder, removed by stop()
 * @property {number} [apiProcesses] how many API processes, each on a port of its own; default 1
 * @property {number} [workerProcesses] how many workers beside them; default 0
 * @property {boolean} [restarts] processes of ours that end by themselves are started again; default: the product has fallen
 * @property {string} [host] default 127.0.0.1
 * @property {number} [port] of the first API process; default a free one
 * @property {string} [redisUrl] a running Redis to use instead of an own one
 * @property {string} [redisClusterNodes] a running cluster to use instead, host:port,host:port
 * @property {string} [redisSentinels] sentinels that name a running Redis, host:port,host:port; its name is REDIS_MASTER_NAME
 * @property {string} [databaseUrl] a running PostgreSQL to use instead of an own one
 * @property {string | undefined} [secret] AUTH_JWT_SECRET; default the one kept in the data folder, made at random
 * @property {Record<string, string>} [env] further settings of the API processes
 * @property {number} [shutdownTimeoutMs] the limit of stop(); default 10,000
 * @property {Phases} [phases] shows the steps
 * @property {AbortSignal | undefined} [signal] gives the start up: what runs is stopped, the promise rejects with Interrupted
 * @property {(processes: { name: string, pid: number }[]) => void} [onProcesses] hears what runs whenever a process is added
 * @property {(line: string) => void} [onEvent] hears when a service ended by itself and was started again
 */

/**
 * @typedef {object} Product
 * @property {string} url of the first API process
 * @property {string[]} urls of all API processes
 * @property {string} secret signs tokens (HS256)
 * @property {string | undefined} redisUrl undefined where a cluster or sentinels are used
 * @property {string} databaseUrl
 * @property {string} dataDir
 * @property {string} logDir
 * @property {() => { name: string, pid: number, isUp: boolean }[]} processes what runs now; `isUp`: it was ready, and has not ended since
 * @property {Promise<string>} fallen resolves with the reason when a part ended for good without being told to
 * @property {() => Promise<void>} stop ends the API processes first, then Redis and PostgreSQL; resolves when all are gone. Twice is harmless
 * @property {() => void} kill ends all at once, without a farewell
 */

/**
 * Starts the whole product from dist: Redis (append-only, fsync always), PostgreSQL and the API processes, on 127.0.0.1 with free ports. Dependencies
 * and dist must stand (`setUp`, or `npm run <name>` through run.mjs). Where a part cannot be started, the others are stopped and the error is a StartFailure.
 * @param {ProductOptions} [options]
 * @returns {Promise<Product>}
 */
export async function startProduct(options = {}) {
  const { signal, shutdownTimeoutMs = 10_000 } = options;
  const temporary = options.dataDir === undefined;
  const folder = dataFolder(options.dataDir ?? mkdtempSync(join(tmpdir(), 'flash-sale-')));
  mkdirSync(folder.logs, { recursive: true });
  if (temporary) chmodSync(folder.root, 0o711);
  const parts = new ProductParts({
    limitMs: shutdownTimeoutMs,
    temporaryDir: temporary ? folder.root : undefined,
    onProcesses: options.onProcesses,
    onEvent: options.onEvent,
  });
  const giveUp = () => void parts.stop();
  signal?.addEventListener('abort', giveUp, { once: true });
  try {
    const stores = await startStores({ ...options, folder, parts });
    const secret = options.secret ?? keptSecret(folder.jwtSecret);
    const urls = await startApis({ ...options, folder, parts, stores, secret });
    await startWorkers({ ...options, folder, parts, stores, secret });
    if (signal?.aborted) throw new Interrupted();
    return {
      url: urls[0] ?? '',
      urls,
      secret,
      redisUrl: stores.redisUrl,
      databaseUrl: stores.databaseUrl,
      dataDir: folder.root,
      logDir: folder.logs,
      processes: () => parts.processes(),
      fallen: parts.fallen,
      stop: () => parts.stop(),
      kill: () => parts.kill(),
    };
  } catch (error) {
    await parts.stop();
    throw signal?.aborted ? new Interrupted() : error;
  } finally {
    signal?.removeEventListener('abort', giveUp);
  }
}

/**
 * @param {ProductOptions & { folder: import('./data-folder.mjs').DataFolder, parts: ProductParts }} options
 * @returns {Promise<{ redisUrl: string | undefined, databaseUrl: string }>}
 */
async function startStores({ folder, parts, phases = silentPhases(), signal, ...given }) {
  let redisUrl = given.redisUrl;
  if (redisUrl === undefined && given.redisClusterNodes === undefined && given.redisSentinels === undefined) {
    redisUrl = await startOwnRedis({ folder, parts, phases, signal });
  }
  const databaseUrl =
    given.databaseUrl ??
    (await startOwnPostgres({ folder, parts, phases, signal, maxConnections: connectionsOf(given) }));
  return { redisUrl, databaseUrl };
}

/**
 * @typedef {object} StoreOptions
 * @property {import('./data-folder.mjs').DataFolder} folder
 * @property {ProductParts} parts
 * @property {Phases} phases
 * @property {AbortSignal | undefined} [signal]
 */

/**
 * What all processes may open, and room for audits and people.
 * @param {Pick<ProductOptions, 'apiProcesses' | 'env'>} given
 */
function connectionsOf({ apiProcesses = 1, env = {} }) {
  const settings = { ...process.env, ...env };
  const processes = apiProcesses * (Number(settings['API_PROCESSES']) || 1);
  return Math.max(100, processes * ((Number(settings['DB_POOL_SIZE']) || 10) + 2) + 50);
}

/** @param {StoreOptions} options */
async function startOwnRedis({ folder, parts, phases, signal }) {
  const binary = await provideRedisBinary({ phases, signal });
  const port = await freePort();
  const logFile = join(folder.logs, 'redis.log');
  rotateLog(logFile);
  await phases.run('Starting Redis', async (tell) => {
    await parts.addStore({
      name: 'Redis',
      start: (onSpawn) => startRedis({ binary: binary.path, dir: folder.redis, port, logFile, onSpawn }),
      stopSteps: [{ signal: 'SIGTERM', limitMs: 1500 }],
    });
    tell(`Redis ${binary.version} on 127.0.0.1:${port}`);
  });
  return `redis://127.0.0.1:${port}`;
}

/** @param {StoreOptions & { maxConnections: number }} options */
async function startOwnPostgres({ folder, parts, phases, signal, maxConnections }) {
  const settings = { max_connections: String(maxConnections) };
  const port = await freePort();
  const logFile = join(folder.logs, 'postgres.log');
  rotateLog(logFile);
  const password = keptSecret(folder.postgresPassword);
  await phases.run('Starting PostgreSQL', async (tell) => {
    await parts.addStore({
      name: 'PostgreSQL',
      start: (onSpawn) => startPostgres({ dir: folder.postgres, port, settings, logFile, password, signal, onSpawn }),
      // SIGINT: fast shutdown, sessions are closed. SIGQUIT: at once, recovered at the next start.
      stopSteps: [
        { signal: 'SIGINT', limitMs: 1500 },
        { signal: 'SIGQUIT', limitMs: 1000 },
      ],
    });
    tell(`PostgreSQL on 127.0.0.1:${port}`);
  });
  return `postgres://postgres:${encodeURIComponent(password)}@127.0.0.1:${port}/postgres`;
}

/**
 * @param {ProductOptions & { folder: import('./data-folder.mjs').DataFolder, parts: ProductParts, secret: string,
 *   stores: { redisUrl: string | undefined, databaseUrl: string } }} options
 * @returns {Promise<string[]>}
 */
async function startApis({ folder, parts, stores, secret, phases = silentPhases(), host = '127.0.0.1', ...given }) {
  const ports = [given.port ?? (await freePort())];
  while (ports.length < (given.apiProcesses ?? 1)) ports.push(await freePort());
  const env = apiEnvironment({ ...given, stores, secret, limitMs: parts.apiLimitMs });
  const urls = ports.map((port) => urlOf(host, port));
  await phases.run('Starting the service', async (tell) => {
    await Promise.all(
      ports.map((port, index) => {
        const logFile = join(folder.logs, ports.length === 1 ? 'api.log' : `api-${index + 1}.log`);
        rotateLog(logFile);
        return parts.addApi({
          name: ports.length === 1 ? 'The API process' : `API process ${index + 1}`,
          start: (onSpawn) => startApi({ host, port, env, logFile, onSpawn }),
          stopSteps: [{ signal: 'SIGTERM', limitMs: parts.apiLimitMs }],
          ...restartsOf(given),
        });
      }),
    );
    tell(`Service ready on ${urls.join(', ')}`);
  });
  return urls;
}

/** @param {Pick<ProductOptions, 'restarts'>} given */
function restartsOf({ restarts = false }) {
  return restarts ? { restarts, restartsPerMinute: Infinity, restartPauseMs: 100 } : {};
}

/**
 * @param {ProductOptions & { folder: import('./data-folder.mjs').DataFolder, parts: ProductParts, secret: string,
 *   stores: { redisUrl: string | undefined, databaseUrl: string } }} options
 */
async function startWorkers({ folder, parts, stores, secret, phases = silentPhases(), workerProcesses = 0, ...given }) {
  if (workerProcesses === 0) return;
  const env = apiEnvironment({ ...given, stores, secret, limitMs: parts.apiLimitMs });
  // A worker consumes whatever the API processes do; a name of its own would be that of all.
  for (const name of ['CONSUMER_ENABLED', 'CONSUMER_NAME']) delete env[name];
  await phases.run('Starting the workers', async (tell) => {
    for (let nth = 1; nth <= workerProcesses; nth += 1) {
      const port = await freePort();
      const logFile = join(folder.logs, `worker-${nth}.log`);
      rotateLog(logFile);
      await parts.addApi({
        name: `worker ${nth}`,
        start: (onSpawn) => startApi({ host: '127.0.0.1', port, env, logFile, entry: workerEntry, onSpawn }),
        stopSteps: [{ signal: 'SIGTERM', limitMs: parts.apiLimitMs }],
        ...restartsOf(given),
      });
    }
    tell(`${workerProcesses} workers`);
  });
}

/**
 * @param {Pick<ProductOptions, 'env' | 'redisClusterNodes' | 'redisSentinels'> & { secret: string, limitMs: number,
 *   stores: { redisUrl: string | undefined, databaseUrl: string } }} options
 * @returns {NodeJS.ProcessEnv}
 */
function apiEnvironment({ stores, secret, limitMs, redisClusterNodes, redisSentinels, env = {} }) {
  /** @type {NodeJS.ProcessEnv} */
  const whole = {
    ...process.env,
    NODE_ENV: 'development',
    DATABASE_URL: stores.databaseUrl,
    SHUTDOWN_TIMEOUT_MS: String(limitMs),
    ...env,
  };
  // Only one of the ways to name a Redis, and to check a token, may reach the process.
  for (const name of ['REDIS_URL', 'REDIS_CLUSTER_NODES', 'REDIS_SENTINELS']) delete whole[name];
  if (stores.redisUrl !== undefined) {
    whole['REDIS_URL'] = stores.redisUrl;
    for (const name of NOT_FOR_A_SINGLE_NODE) delete whole[name];
  } else if (redisClusterNodes !== undefined) whole['REDIS_CLUSTER_NODES'] = redisClusterNodes;
  else if (redisSentinels !== undefined) whole['REDIS_SENTINELS'] = redisSentinels;
  delete whole['AUTH_JWT_SECRET'];
  if (!whole['AUTH_JWKS_URL']) whole['AUTH_JWT_SECRET'] = secret;
  return whole;
}

const NOT_FOR_A_SINGLE_NODE = [
  'REDIS_MASTER_NAME',
  'REDIS_USERNAME',
  'REDIS_PASSWORD',
  'REDIS_SENTINEL_USERNAME',
  'REDIS_SENTINEL_PASSWORD',
  'REDIS_TLS',
];

/** Phases that show nothing unless they take long, on the error stream. */
function silentPhases() {
  return new Phases(process.stderr, { quiet: true });
}
