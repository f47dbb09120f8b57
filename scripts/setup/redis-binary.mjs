import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { dataFolder } from '../services/data-folder.mjs';
import { aptIsThere, installWithApt, unpackWithApt } from './apt.mjs';
import { lastLines, runCommand } from './command.mjs';
import { withLock } from './file-lock.mjs';
import { projectRoot } from './project-root.mjs';
import { StartFailure } from './start-failure.mjs';

/** Servers that do, in the order of preference. */
const NAMES = ['redis-server', 'valkey-server'];
const OLDEST_MAJOR = 7;
const USUAL_FOLDERS = ['/usr/bin', '/usr/sbin', '/usr/local/bin', '/opt/homebrew/bin'];

/** @typedef {{ path: string, version: string }} RedisBinary */

/**
 * A Redis (or Valkey) server of version 7.0 or newer: from the PATH, from an earlier unpacking, else installed now.
 * @param {{ phases: import('./phases.mjs').Phases, signal?: AbortSignal | undefined }} options
 * @returns {Promise<RedisBinary>}
 */
export async function provideRedisBinary({ phases, signal }) {
  const data = dataFolder(join(projectRoot, '.data'));
  const known = await findRedisBinary(data.tools);
  if (known.found !== undefined) return known.found;
  return withLock(data.setUpLock, { signal }, async () => {
    const meanwhile = await findRedisBinary(data.tools);
    if (meanwhile.found !== undefined) return meanwhile.found;
    return phases.run('Installing Redis', async (tell) => {
      const binary = await installRedis({ data, signal, tooOld: meanwhile.tooOld });
      tell(`Redis ${binary.version} installed: ${binary.path}`);
      return binary;
    });
  });
}

/**
 * Looks for a server that is there already.
 * @param {string} tools
 * @returns {Promise<{ found: RedisBinary | undefined, tooOld: string[] }>} tooOld: what was found and cannot be used, in words
 */
export async function findRedisBinary(tools) {
  const path = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  const preset = process.env['REDIS_SERVER'];
  const candidates = [
    ...(preset === undefined || preset === '' ? [] : [preset]),
    ...[...path, join(tools, 'bin'), ...USUAL_FOLDERS].flatMap((folder) => NAMES.map((name) => join(folder, name))),
  ].filter(isExecutable);
  /** @type {string[]} */
  const tooOld = [];
  for (const candidate of new Set(candidates)) {
    const version = await serverVersion(candidate);
    if (version !== undefined && majorOf(version) >= OLDEST_MAJOR)
      return { found: { path: candidate, version }, tooOld };
    tooOld.push(version === undefined ? `${candidate} does not run` : `${candidate} is ${version}`);
  }
  return { found: undefined, tooOld };
}

/** @param {string} file */
function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** @param {string} file */
async function serverVersion(file) {
  const { code, stdout } = await runCommand(file, ['--version'], { timeoutMs: 10_000 });
  return code === 0 ? versionIn(stdout) : undefined;
}

/**
 * The version in what `redis-server --version` or `valkey-server --version` prints.
 * @param {string} text
 */
export function versionIn(text) {
  return /\bv=(\d+\.\d+(?:\.\d+)?)/.exec(text)?.[1];
}

/** @param {string} version */
function majorOf(version) {
  return Number(version.split('.')[0]);
}

/**
 * @param {{ data: import('../services/data-folder.mjs').DataFolder, signal?: AbortSignal | undefined, tooOld: string[] }} options
 * @returns {Promise<RedisBinary>}
 */
async function installRedis({ data, signal, tooOld }) {
  const logFile = join(data.logs, 'redis-install.log');
  /** @type {string[]} */
  const tried = [...tooOld];
  for (const way of await waysToInstall(signal)) {
    const fault = await way.install({ tools: data.tools, logFile, signal });
    const { found } = await findRedisBinary(data.tools);
    if (found !== undefined) return found;
    tried.push(`${way.name}: ${fault ?? 'no usable server came of it'}`);
  }
  throw new StartFailure({
    what: 'No Redis server was found, and none could be installed',
    why: tried.join('\n') || 'there is neither apt-get nor brew here',
    next: installHint(),
    ...(existsSync(logFile) ? { log: logFile } : {}),
  });
}

/**
 * The ways that this machine offers, best first.
 * @param {AbortSignal | undefined} signal
 * @returns {Promise<{ name: string, install: (options: InstallOptions) => Promise<string | undefined> }[]>}
 */
async function waysToInstall(signal) {
  const ways = [];
  if (aptIsThere()) {
    if (process.getuid?.() === 0) ways.push({ name: 'apt-get install', install: installWithApt([]) });
    else if ((await runCommand('sudo', ['-n', 'true'], { signal, timeoutMs: 10_000 })).code === 0) {
      ways.push({ name: 'sudo apt-get install', install: installWithApt(['sudo', '-n']) });
    }
    ways.push({ name: 'apt-get download into .data/tools', install: unpackWithApt });
  }
  if (
    process.platform === 'darwin' ||
    (await runCommand('brew', ['--version'], { signal, timeoutMs: 30_000 })).code === 0
  ) {
    ways.push({ name: 'brew install redis', install: installWithBrew });
  }
  return ways;
}

/** @typedef {{ tools: string, logFile: string, signal?: AbortSignal | undefined }} InstallOptions */

/** @param {InstallOptions} options */
async function installWithBrew({ logFile, signal }) {
  const { code, tail } = await runCommand('brew', ['install', '--quiet', 'redis'], { logFile, signal });
  return code === 0 ? undefined : lastLines(tail, 2);
}

function installHint() {
  if (process.platform === 'darwin')
    return 'Install Homebrew (https://brew.sh) and run brew install redis; or set REDIS_URL to a running Redis.';
  const commands = [
    ['/usr/bin/apt-get', 'sudo apt-get install redis-server'],
    ['/usr/bin/dnf', 'sudo dnf install redis (or valkey)'],
    ['/sbin/apk', 'sudo apk add redis'],
    ['/usr/bin/pacman', 'sudo pacman -S valkey'],
    ['/usr/bin/zypper', 'sudo zypper install redis'],
  ];
  const command = commands.find(([file]) => existsSync(/** @type {string} */ (file)))?.[1];
  const install = command === undefined ? 'Install redis-server' : `Install Redis: ${command}`;
  return `${install}, version ${OLDEST_MAJOR}.0 or newer; or set REDIS_URL to a running one.`;
}
