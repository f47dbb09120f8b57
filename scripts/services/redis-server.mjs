import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { lastLines } from '../setup/command.mjs';
import { StartFailure } from '../setup/start-failure.mjs';
import { fileSize, logTail } from './data-folder.mjs';

/** Append-only, each write on the disk before it is answered, never evicting: what is accepted is durable. */
const DURABLE = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', '', '--maxmemory-policy', 'noeviction'];

/**
 * @typedef {object} RedisOptions
 * @property {string | undefined} [binary] the server's path; REDIS_SERVER or `redis-server` on the PATH where it is not given
 * @property {string} dir
 * @property {number} port
 * @property {string[]} [args] appended to the command line; they win over the defaults (append-only, fsync always, noeviction)
 * @property {string} [logFile]
 * @property {(child: import('node:child_process').ChildProcess) => void} [onSpawn] hears of the process before it is ready
 */

/**
 * Starts a real redis-server on 127.0.0.1 in a process group of its own and resolves when it answers PING with PONG.
 * Where it cannot be started the error is a StartFailure.
 * @param {RedisOptions} options
 * @returns {Promise<import('node:child_process').ChildProcess>}
 */
export async function startRedis({ binary, dir, port, args = [], logFile = join(dir, 'redis.log'), onSpawn }) {
  const server = binary ?? (process.env['REDIS_SERVER'] || 'redis-server');
  mkdirSync(dir, { recursive: true });
  const logged = fileSize(logFile);
  const log = openSync(logFile, 'a');
  const place = ['--port', String(port), '--bind', '127.0.0.1', '--dir', dir];
  const child = spawn(server, [...place, ...DURABLE, ...args], { detached: true, stdio: ['ignore', log, log] });
  closeSync(log);
  onSpawn?.(child);
  const failed = new Promise((_, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => {
      reject(redisFailure(logTail(logFile, logged), signal ?? `code ${code}`, { dir, logFile }));
    });
  });
  failed.catch(() => undefined);
  await Promise.race([failed, answersPing(port, 120_000)]);
  return child;
}

/**
 * What Redis's last words mean for the person.
 * @param {string} output
 * @param {string} end how it ended
 * @param {{ dir: string, logFile: string }} places
 */
export function redisFailure(output, end, { dir, logFile }) {
  const next = /No space left/i.test(output)
    ? `Free some space on the disk of ${dir} (df -h), then run it again.`
    : /Permission denied/i.test(output)
      ? `Give your user the right to ${dir} (ls -la), then run it again.`
      : /Can't handle RDB format version/i.test(output)
        ? 'The data is from a newer Redis: put that one on the PATH. To begin anew: npm run reset'
        : /Bad file format|Unrecoverable error|corrupt/i.test(output)
          ? `Mend the file: redis-check-aof --fix ${join(dir, 'appendonlydir')}/*.manifest. To begin anew: npm run reset`
          : 'Read the log, then run it again; or set REDIS_URL to a running Redis.';
  // Redis marks its warnings and last words with #.
  const warnings = output
    .split('\n')
    .filter((line) => / # /.test(line) && !/overcommit|Configuration loaded/.test(line));
  const why = lastLines(warnings.length === 0 ? output : warnings.join('\n'), 3) || end;
  return new StartFailure({ what: 'Redis did not start', why, next, log: logFile });
}

/**
 * Resolves when the server at the port answers PING with PONG (not LOADING, not an authentication error).
 * @param {number} port
 * @param {number} limitMs
 */
export async function answersPing(port, limitMs) {
  const deadline = Date.now() + limitMs;
  for (;;) {
    if ((await ping('127.0.0.1', port)).startsWith('+PONG')) return;
    if (Date.now() > deadline) throw new Error(`Redis at 127.0.0.1:${port} did not answer PING within ${limitMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/**
 * @param {string} host
 * @param {number} port
 * @returns {Promise<string>}
 */
function ping(host, port) {
  return new Promise((resolve) => {
    const socket = connect(port, host, () => socket.write('PING\r\n'));
    socket.setTimeout(1000, () => socket.destroy());
    socket.once('data', (data) => {
      resolve(data.toString());
      socket.destroy();
    });
    socket.once('error', () => resolve(''));
    socket.once('close', () => resolve(''));
  });
}
