import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { lastLines } from '../setup/command.mjs';
import { projectRoot } from '../setup/project-root.mjs';
import { StartFailure } from '../setup/start-failure.mjs';
import { fileSize, logTail } from './data-folder.mjs';
import { mayListen, portOwner } from './port-owner.mjs';

export const apiEntry = join(projectRoot, 'dist/apps/seckill/src/main.js');
export const workerEntry = join(projectRoot, 'dist/apps/worker/src/main.js');

/**
 * @typedef {object} ApiOptions
 * @property {string} host
 * @property {number} port
 * @property {NodeJS.ProcessEnv} env the whole environment of the process; HOST and PORT are added
 * @property {string} logFile
 * @property {string} [entry] apiEntry where it is not given, or workerEntry
 * @property {number} [readyWithinMs]
 * @property {(child: import('node:child_process').ChildProcess) => void} [onSpawn] hears of the process before it is ready
 */

/**
 * Starts one API process (or a worker) from dist in a process group of its own and resolves when GET /health/ready answers 200.
 * Where it cannot be started the error is a StartFailure that carries the process's own last words.
 * @param {ApiOptions} options
 * @returns {Promise<import('node:child_process').ChildProcess>}
 */
export async function startApi({ host, port, env, logFile, entry = apiEntry, readyWithinMs = 60_000, onSpawn }) {
  if (!existsSync(entry))
    throw new StartFailure({ what: 'The service is not built', why: `${entry} is missing`, next: 'npm run build' });
  const logged = fileSize(logFile);
  const log = openSync(logFile, 'a');
  const child = spawn(process.execPath, ['--enable-source-maps', entry], {
    cwd: projectRoot,
    env: { ...env, HOST: host, PORT: String(port) },
    detached: true,
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  onSpawn?.(child);
  const failed = new Promise((_, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => {
      reject(apiFailure(logTail(logFile, logged), signal ?? `exit code ${code}`, { port, logFile }));
    });
  });
  failed.catch(() => undefined);
  await Promise.race([failed, isReady({ child, port, url: urlOf(host, port), readyWithinMs, logFile })]);
  return child;
}

/**
 * The address under which this machine reaches a server that listens on the host.
 * @param {string} host
 * @param {number} port
 */
export function urlOf(host, port) {
  const reachable = host === '0.0.0.0' || host === '' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}

/**
 * @param {string} output
 * @param {string} end
 * @param {{ port: number, logFile: string }} places
 */
function apiFailure(output, end, { port, logFile }) {
  if (output.includes('EADDRINUSE')) return portTaken(port, port + 1);
  return new StartFailure({
    what: 'The service ended before it was ready',
    why: lastLines(output.replace(/^\s+at .*$/gm, ''), 8) || end,
    next: 'Mend what it names, then run it again.',
    log: logFile,
  });
}

/**
 * @param {number} port
 * @param {number} other a port that is free
 */
export function portTaken(port, other) {
  const owner = portOwner(port) ?? 'another process';
  return new StartFailure({
    what: `Port ${port} is taken`,
    why: `${owner} listens on it`,
    next: `PORT=${other} npm start`,
  });
}

/**
 * @param {{ child: import('node:child_process').ChildProcess, port: number, url: string, readyWithinMs: number, logFile: string }} options
 */
async function isReady({ child, port, url, readyWithinMs, logFile }) {
  const deadline = Date.now() + readyWithinMs;
  for (;;) {
    const answer = await readiness(url);
    // Whoever waits hears of the end by itself.
    if (child.exitCode !== null || child.signalCode !== null) return;
    // Another program may have taken the port since it was looked at: its answer is not ours.
    if (answer.status === 200 && mayListen(port, child.pid)) return;
    if (Date.now() > deadline) {
      throw new StartFailure({
        what: `The service was not ready within ${readyWithinMs / 1000} s`,
        why: `GET ${url}/health/ready: ${answer.text}`,
        next: 'Read the log, then run it again.',
        log: logFile,
      });
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/**
 * @param {string} url
 * @returns {Promise<{ status: number, text: string }>}
 */
async function readiness(url) {
  try {
    const response = await fetch(`${url}/health/ready`, { signal: AbortSignal.timeout(5000) });
    return { status: response.status, text: `${response.status} ${(await response.text()).slice(0, 500)}` };
  } catch (error) {
    const { cause, message } = /** @type {Error} */ (error);
    return { status: 0, text: cause instanceof Error ? cause.message : message };
  }
}
