import { existsSync, mkdirSync, statfsSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { tryLock } from '../setup/file-lock.mjs';
import { projectRoot } from '../setup/project-root.mjs';
import { StartFailure } from '../setup/start-failure.mjs';
import { portTaken } from './api-server.mjs';
import { withoutPassword } from './banner.mjs';
import { freePort } from './free-port.mjs';
import { listenFault } from './port-owner.mjs';
import { endLeftovers, runningStart } from './run-file.mjs';

const MEBIBYTE = 1024 * 1024;
/** Room for what is not there yet, and for the data to grow a little. */
const ROOM_MIB = { dependencies: 700, newData: 300, keptData: 150 };

/** @typedef {import('./data-folder.mjs').DataFolder} DataFolder */

/**
 * What can be refused at once, before anything is installed: no room on the disk, a port that is taken.
 * @param {{ host: string, port: number, dataDir: string }} options
 */
export async function checkPlace({ host, port, dataDir }) {
  if (!existsSync(join(projectRoot, 'node_modules'))) checkRoom(projectRoot, ROOM_MIB.dependencies);
  checkRoom(dataDir, existsSync(join(dataDir, 'postgres')) ? ROOM_MIB.keptData : ROOM_MIB.newData);
  const fault = await listenFault(host, port);
  if (fault === 'EADDRINUSE') throw portTaken(port, await nextFreePort(host, port));
  if (fault !== undefined) {
    const next = fault === 'EACCES' ? 'PORT=3000 npm start' : 'HOST=127.0.0.1 npm start';
    throw new StartFailure({ what: `The service cannot listen on ${host}:${port}`, why: fault, next });
  }
}

/**
 * @param {string} folder
 * @param {number} neededMib
 */
function checkRoom(folder, neededMib) {
  const disk = statfsSync(folder);
  const freeMib = Math.floor((disk.bavail * disk.bsize) / MEBIBYTE);
  if (freeMib >= neededMib) return;
  throw new StartFailure({
    what: 'There is too little room on the disk',
    why: `${freeMib} MiB are free at ${folder}, ${neededMib} MiB are needed`,
    next: `Free some space (df -h ${folder}), then run it again.`,
  });
}

/**
 * @param {string} host
 * @param {number} port
 */
async function nextFreePort(host, port) {
  for (let other = port + 1; other <= Math.min(port + 50, 65535); other += 1) {
    if ((await listenFault(host, other)) === undefined) return other;
  }
  return freePort();
}

/**
 * Takes the data folder for this start; ends what a killed start left running on it.
 * @param {DataFolder} data
 * @param {(line: string) => void} say
 */
export async function claimData(data, say) {
  mkdirSync(data.logs, { recursive: true });
  const lock = tryLock(data.startLock);
  if ('release' in lock) {
    const ended = await endLeftovers(data.runFile);
    if (ended.length > 0) say(`- Ended what an earlier start left running: ${ended.join(', ')}`);
    return lock;
  }
  const url = runningStart(data.runFile)?.report?.url;
  throw new StartFailure({
    what: 'npm start is already running on this data folder',
    why: `pid ${lock.holderPid} uses ${data.root}${url === undefined ? '' : ` and serves on ${url}`}`,
    next: `Use that one (npm run status), or stop it: kill ${lock.holderPid}`,
  });
}

/**
 * Names all bad settings at once, before a service is started.
 * @param {{ host: string, port: number }} place where the service will listen
 */
export async function checkSettings({ host, port }) {
  const face = join(projectRoot, 'dist/libs/config/src/index.js');
  const { readSettings } = await import(pathToFileURL(face).href);
  const { REDIS_URL, REDIS_CLUSTER_NODES, REDIS_SENTINELS, DATABASE_URL, AUTH_JWKS_URL, AUTH_JWT_SECRET } = process.env;
  const result = readSettings({
    ...process.env,
    NODE_ENV: 'development',
    HOST: host,
    PORT: String(port),
    ...(REDIS_URL || REDIS_CLUSTER_NODES || REDIS_SENTINELS ? {} : { REDIS_URL: 'redis://127.0.0.1:6379' }),
    ...(DATABASE_URL ? {} : { DATABASE_URL: 'postgres://127.0.0.1:5432/postgres' }),
    ...(AUTH_JWKS_URL || AUTH_JWT_SECRET ? {} : { AUTH_JWT_SECRET: 'x'.repeat(43) }),
  });
  if (result.ok) return;
  throw new StartFailure({
    what: result.problems.length === 1 ? 'A setting is wrong' : `${result.problems.length} settings are wrong`,
    why: result.problems.join('\n'),
    next: 'Change or unset these environment variables, then run it again.',
  });
}

/**
 * Refuses an own server that cannot be reached, instead of waiting for it in the dark.
 * @param {string} setting
 * @param {string | undefined} address
 * @param {number} defaultPort
 */
export async function checkReachable(setting, address, defaultPort) {
  if (address === undefined || !URL.canParse(address)) return;
  const { hostname, port } = new URL(address);
  if (hostname === '') return;
  const fault = await new Promise((done) => {
    const socket = connect({
      host: hostname.replace(/^\[|\]$/g, ''),
      port: Number(port) || defaultPort,
      timeout: 5000,
    });
    socket.once('connect', () => done(undefined)).once('error', (error) => done(error.message));
    socket.once('timeout', () => done('no answer within 5 s'));
    socket.once('close', () => socket.destroy());
  });
  if (fault === undefined) return;
  throw new StartFailure({
    what: `${setting} cannot be reached`,
    why: `${withoutPassword(address)}: ${fault}`,
    next: `Start that server, or run it without ${setting}: then an own one is started.`,
  });
}
