import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname } from 'node:path';
import { Interrupted } from './start-failure.mjs';

const TAIL_BYTES = 16 * 1024;
const FORCE_AFTER_MS = 3000;

/**
 * @typedef {object} CommandOptions
 * @property {string} [cwd]
 * @property {Record<string, string | undefined>} [env] added to the environment of this process
 * @property {string} [logFile] gets everything the command prints
 * @property {AbortSignal | undefined} [signal] ends the command with its whole process group; the promise then rejects with Interrupted
 * @property {number} [timeoutMs]
 * @property {number} [uid] as whom it runs; only root may say so
 * @property {number} [gid]
 */

/**
 * Runs a command to its end in a process group of its own, so that a Ctrl-C reaches it only through `signal`.
 * A command that cannot be started has the code 127, one that ran into its timeout 124.
 * @param {string} command
 * @param {string[]} args
 * @param {CommandOptions} [options]
 * @returns {Promise<{ code: number, stdout: string, tail: string }>} stdout in full (up to 4 MiB), tail: the last lines of both streams
 */
export function runCommand(command, args, { cwd, env, logFile, signal, timeoutMs, uid, gid } = {}) {
  if (signal?.aborted) return Promise.reject(new Interrupted());
  const log = logFile === undefined ? undefined : openLog(logFile, `$ ${command} ${args.join(' ')}\n`);
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...env },
      detached: true,
      ...(uid === undefined ? {} : { uid }),
      ...(gid === undefined ? {} : { gid }),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let stdout = '';
    let tail = '';
    let timedOut = false;
    /** @param {Buffer} data */
    const keep = (data) => {
      tail = (tail + data.toString()).slice(-TAIL_BYTES);
      if (log !== undefined) writeSync(log, data);
    };
    child.stdout.on('data', (data) => {
      if (stdout.length < 4 * 1024 * 1024) stdout += data.toString();
      keep(data);
    });
    child.stderr.on('data', keep);
    const end = () => endGroup(child);
    const timer = setTimeout(
      () => {
        timedOut = true;
        end();
      },
      timeoutMs ?? 30 * 60_000,
    );
    signal?.addEventListener('abort', end, { once: true });
    /** @param {number} code */
    const settle = (code) => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      if (log !== undefined) closeSync(log);
      if (signal?.aborted) reject(new Interrupted());
      else resolve({ code: timedOut ? 124 : code, stdout, tail });
    };
    child.once('error', (error) => {
      tail += error.message;
      settle(127);
    });
    child.once('close', (code, signalName) => settle(code ?? 128 + (signalName ? constants.signals[signalName] : 0)));
  });
}

/** @param {import('node:child_process').ChildProcess} child */
function endGroup(child) {
  killGroup(child.pid, 'SIGTERM');
  setTimeout(() => {
    if (child.exitCode === null && child.signalCode === null) killGroup(child.pid, 'SIGKILL');
  }, FORCE_AFTER_MS).unref();
}

/**
 * Signals the whole process group that a detached child leads; a group that is gone is no error.
 * @param {number | undefined} pid
 * @param {NodeJS.Signals} signal
 */
export function killGroup(pid, signal) {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch (error) {
    const { code } = /** @type {NodeJS.ErrnoException} */ (error);
    if (code !== 'ESRCH' && code !== 'EPERM') throw error;
  }
}

/**
 * @param {string} file
 * @param {string} headline
 */
function openLog(file, headline) {
  mkdirSync(dirname(file), { recursive: true });
  const log = openSync(file, 'a');
  writeSync(log, headline);
  return log;
}

/**
 * The last lines of an output that say something, for a failure's `why`.
 * @param {string} text
 * @param {number} [count]
 */
export function lastLines(text, count = 5) {
  return text
    .split('\n')
    .map((line) => line.trimEnd())
    .filter((line) => line !== '')
    .slice(-count)
    .join('\n');
}
