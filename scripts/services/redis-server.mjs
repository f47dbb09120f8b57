import { spawn } from 'node:child_process';
import { mkdirSync, openSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';

/**
 * Starts a real redis-server on 127.0.0.1 in a process group of its own and resolves when it answers PING with PONG.
 * @param {{ binary?: string, dir: string, port: number, args?: string[], logFile?: string }} options
 *   args are appended to the command line and win over the defaults (append-only, fsync always, noeviction).
 * @returns {Promise<import('node:child_process').ChildProcess>}
 */
export async function startRedis({ binary = 'redis-server', dir, port, args = [], logFile = join(dir, 'redis.log') }) {
  mkdirSync(dir, { recursive: true });
  const log = openSync(logFile, 'a');
  const child = spawn(
    binary,
    [
      '--port',
      String(port),
      '--bind',
      '127.0.0.1',
      '--dir',
      dir,
      '--appendonly',
      'yes',
      '--appendfsync',
      'always',
      '--save',
      '',
      '--maxmemory-policy',
      'noeviction',
      ...args,
    ],
    { detached: true, stdio: ['ignore', log, log] },
  );
  const failed = new Promise((_, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) =>
      reject(new Error(`redis-server ended at once (code ${code}, signal ${signal}); see ${logFile}`)),
    );
  });
  failed.catch(() => undefined);
  await Promise.race([failed, answersPing(port, 15_000)]);
  return child;
}

/** Resolves when the server at the port answers PING with PONG (not LOADING, not an authentication error). */
export async function answersPing(port, limitMs) {
  const deadline = Date.now() + limitMs;
  for (;;) {
    if ((await ping(port)).startsWith('+PONG')) return;
    if (Date.now() > deadline) throw new Error(`Redis at 127.0.0.1:${port} did not answer PING within ${limitMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function ping(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'));
    socket.setTimeout(1000, () => socket.destroy());
    socket.once('data', (data) => {
      resolve(data.toString());
      socket.destroy();
    });
    socket.once('error', () => resolve(''));
    socket.once('close', () => resolve(''));
  });
}
