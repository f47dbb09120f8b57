import { randomInt } from 'node:crypto';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { banner, curlLine, withoutPassword } from './services/banner.mjs';
import { dataFolder, logTail } from './services/data-folder.mjs';
import { demoVoucher } from './services/demo-voucher.mjs';
import { freePort } from './services/free-port.mjs';
import { startProduct } from './services/product.mjs';
import { removeRunFile, writeRunFile } from './services/run-file.mjs';
import { signToken } from './services/signed-token.mjs';
import { checkPlace, checkReachable, checkSettings, claimData } from './services/start-checks.mjs';
import { listenForStop } from './services/stop-request.mjs';
import { lastLines } from './setup/command.mjs';
import { Phases } from './setup/phases.mjs';
import { projectRoot } from './setup/project-root.mjs';
import { checkNodeVersion, setUp } from './setup/set-up.mjs';
import { Interrupted, StartFailure, tellFailure } from './setup/start-failure.mjs';

const HELP = `npm start [-- --json] [-- --data-dir DIR]
  Does all the set-up, starts Redis, PostgreSQL and the service, puts a demo voucher on sale. Ctrl+C stops everything.
  --json          prints one line of JSON when all is ready, instead of the banner
  --as-built      installs and builds nothing: starts what dist holds
  --data-dir DIR  keeps the data there instead of in .data
  Settings come from the environment: PORT, HOST, API_PROCESSES, REDIS_URL, DATABASE_URL, AUTH_JWT_SECRET, ... (see README)`;

/** @typedef {import('./services/data-folder.mjs').DataFolder} DataFolder */
/** @typedef {{ json: boolean, asBuilt: boolean, dataDir: string, host: string, port: number, shutdownTimeoutMs: number }} StartOptions */

/**
 * @param {string[]} args
 * @returns {Promise<StartOptions | undefined>} undefined: only help was asked for
 */
async function readOptions(args) {
  let values;
  try {
    ({ values } = parseArgs({
      args,
      options: {
        json: { type: 'boolean' },
        'as-built': { type: 'boolean' },
        'data-dir': { type: 'string' },
        help: { type: 'boolean', short: 'h' },
      },
    }));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new StartFailure({ what: 'An argument is unknown', why, next: 'npm start -- --help' });
  }
  if (values.help === true) return undefined;
  return {
    json: values.json === true,
    asBuilt: values['as-built'] === true,
    dataDir: values['data-dir'] === undefined ? join(projectRoot, '.data') : resolve(values['data-dir']),
    host: process.env['HOST']?.trim() || '127.0.0.1',
    port: await readPort(process.env['PORT']?.trim() || '3000'),
    shutdownTimeoutMs: Number(process.env['SHUTDOWN_TIMEOUT_MS']?.trim() || '10000') || 10_000,
  };
}

/** @param {string} text */
async function readPort(text) {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65535) return Number(text) === 0 ? freePort() : Number(text);
  throw new StartFailure({
    what: 'PORT is no port',
    why: `PORT is "${text}"; allowed are 1..65535, and 0 for a free one`,
    next: 'PORT=3000 npm start',
  });
}

/**
 * @param {StartOptions} options
 * @param {{ data: DataFolder, phases: Phases, signal: AbortSignal, say: (line: string) => void,
 *   onProcesses: (processes: { name: string, pid: number }[]) => void }} context
 */
async function startAll({ asBuilt, host, port, shutdownTimeoutMs }, { data, phases, signal, say, onProcesses }) {
  if (!asBuilt) await setUp({ phases, signal });
  await checkSettings({ host, port });
  const { REDIS_URL: redisUrl, REDIS_CLUSTER_NODES: redisClusterNodes, DATABASE_URL: databaseUrl } = process.env;
  await checkReachable('REDIS_URL', redisUrl || undefined, 6379);
  await checkReachable('DATABASE_URL', databaseUrl || undefined, 5432);
  return startProduct({
    dataDir: data.root,
    host,
    port,
    ...(redisUrl ? { redisUrl } : {}),
    ...(redisClusterNodes ? { redisClusterNodes } : {}),
    ...(process.env['REDIS_SENTINELS'] ? { redisSentinels: process.env['REDIS_SENTINELS'] } : {}),
    ...(databaseUrl ? { databaseUrl } : {}),
    secret: process.env['AUTH_JWT_SECRET'] || undefined,
    env: { HMDP_COMPAT: process.env['HMDP_COMPAT'] ?? 'true' },
    shutdownTimeoutMs,
    phases,
    signal,
    onEvent: (line) => say(`- ${line}`),
    onProcesses,
  });
}

/**
 * @param {import('./services/product.mjs').Product} product
 * @returns {Promise<import('./services/banner.mjs').RunReport>}
 */
async function reportOf(product) {
  const { url, secret, dataDir } = product;
  const ownRedis = !['REDIS_URL', 'REDIS_CLUSTER_NODES', 'REDIS_SENTINELS'].some((name) => process.env[name]);
  const base = {
    url,
    docs: `${url}/docs`,
    metrics: `${url}/metrics`,
    health: `${url}/health/ready`,
    pid: process.pid,
    dataDir,
    dataKept: true,
    durability: ownRedis
      ? 'an accepted order is on the disk before it is answered (Redis appendfsync always)'
      : `as your Redis is set up; ${url}/health/ready names the level`,
    redisUrl: product.redisUrl,
    ...redisOfSeveral(product.redisUrl),
    databaseUrl: product.databaseUrl,
    logDir: product.logDir,
  };
  if (process.env['AUTH_JWKS_URL']) {
    return {
      ...base,
      voucherId: undefined,
      buyerId: undefined,
      buyerToken: undefined,
      adminToken: undefined,
      curl: undefined,
    };
  }
  const adminToken = signToken({ secret, user: '1', role: 'admin' });
  const voucherId = await demoVoucher({ url, adminToken });
  const buyerId = String(randomInt(1_000_000, 2 ** 47));
  const buyerToken = signToken({ secret, user: buyerId });
  return { ...base, voucherId, buyerId, buyerToken, adminToken, curl: curlLine({ url, voucherId, buyerToken }) };
}

/**
 * How a Redis of several nodes was named, where one is used.
 * @param {string | undefined} redisUrl
 */
function redisOfSeveral(redisUrl) {
  const { REDIS_CLUSTER_NODES: nodes, REDIS_SENTINELS: sentinels, REDIS_MASTER_NAME: name } = process.env;
  const isCluster = redisUrl === undefined && Boolean(nodes);
  const isSentinel = redisUrl === undefined && !isCluster && Boolean(sentinels);
  return {
    redisClusterNodes: isCluster ? nodes : undefined,
    redisSentinels: isSentinel ? sentinels : undefined,
    redisMasterName: isSentinel ? name : undefined,
  };
}

/**
 * The report with the passwords of servers that are not ours left out.
 * @param {import('./services/banner.mjs').RunReport} report
 */
function forTheScreen(report) {
  return {
    ...report,
    redisUrl: report.redisUrl && process.env['REDIS_URL'] ? withoutPassword(report.redisUrl) : report.redisUrl,
    databaseUrl: process.env['DATABASE_URL'] ? withoutPassword(report.databaseUrl) : report.databaseUrl,
  };
}

/** @returns {Promise<number>} the exit code */
async function main() {
  // A reader of our output that went away is no reason to stop.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  /** @type {import('./services/product.mjs').Product | undefined} */
  let product;
  /** @type {{ release: () => void } | undefined} */
  let lock;
  const stop = listenForStop({
    onForce: () => {
      product?.kill();
      process.exit(1);
    },
  });
  checkNodeVersion();
  const options = await readOptions(process.argv.slice(2));
  if (options === undefined) {
    process.stdout.write(`${HELP}\n`);
    return 0;
  }
  const out = options.json ? process.stderr : process.stdout;
  const say = (/** @type {string} */ line) => void out.write(`${line}\n`);
  const data = dataFolder(options.dataDir);
  try {
    lock = await claimData(data, say);
    await checkPlace(options);
    /** @type {import('./services/banner.mjs').RunReport | undefined} */
    let report;
    product = await startAll(options, {
      data,
      phases: new Phases(out),
      signal: stop.signal,
      say,
      onProcesses: (processes) => writeRunFile(data.runFile, processes, report),
    });
    report = await Promise.race([reportOf(product), stop.requested.then(() => Promise.reject(new Interrupted()))]);
    writeRunFile(data.runFile, product.processes(), report);
    const shown = forTheScreen(report);
    const secretNote =
      process.env['AUTH_JWT_SECRET'] || process.env['AUTH_JWKS_URL'] ? 'your own secret' : 'dev secret';
    process.stdout.write(
      `${options.json ? JSON.stringify(shown) : banner(shown, { host: options.host, secretNote })}\n`,
    );
    const fallen = await Promise.race([product.fallen, stop.requested]);
    if (typeof fallen === 'string') throw partFell(fallen, product.logDir);
    return 0;
  } catch (error) {
    if (error instanceof Interrupted || stop.signal.aborted) return 0;
    throw error;
  } finally {
    if (lock !== undefined) {
      if (product !== undefined) {
        say('\n- Stopping ...');
        await product.stop();
        say('- Stopped; the data is kept.');
      } else if (stop.signal.aborted) {
        say('- Stopped.');
      }
      removeRunFile(data.runFile);
      lock.release();
    }
  }
}

/**
 * @param {string} reason
 * @param {string} logDir
 */
function partFell(reason, logDir) {
  const log = join(logDir, 'api.log');
  return new StartFailure({
    what: reason,
    why: lastLines(logTail(log), 5) || 'it said nothing',
    next: 'Run it again.',
    log,
  });
}

main().then(
  (code) => process.exit(code),
  (error) => {
    process.stderr.write(`\n${tellFailure(error, 'npm start', process.env['LOG_LEVEL'])}\n`);
    process.exit(1);
  },
);
