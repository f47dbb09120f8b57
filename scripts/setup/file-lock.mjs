import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { identify, isLiving } from '../services/process-identity.mjs';
import { Interrupted } from './start-failure.mjs';

/**
 * Takes the lock file for this process, or answers who holds it. A lock whose holder has died is taken over.
 * @param {string} file
 * @returns {{ release: () => void } | { holderPid: number }}
 */
export function tryLock(file) {
  mkdirSync(dirname(file), { recursive: true });
  for (let attempt = 0; ; attempt += 1) {
    try {
      const lock = openSync(file, 'wx', 0o600);
      writeSync(lock, JSON.stringify(identify(process.pid)));
      closeSync(lock);
      return { release: () => rmSync(file, { force: true }) };
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EEXIST') throw error;
    }
    const holder = readHolder(file);
    if (holder !== undefined && isLiving(holder)) return { holderPid: holder.pid };
    if (attempt > 5) throw new Error(`the lock file ${file} cannot be taken over; remove it`);
    rmSync(file, { force: true });
  }
}

/**
 * @param {string} file
 * @returns {import('../services/process-identity.mjs').ProcessIdentity | undefined}
 */
function readHolder(file) {
  try {
    const holder = JSON.parse(readFileSync(file, 'utf8'));
    return typeof holder?.pid === 'number' && typeof holder?.startedAt === 'string' ? holder : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Runs the work while holding the lock file; waits while another living process holds it.
 * @template T
 * @param {string} file
 * @param {{ signal?: AbortSignal | undefined, limitMs?: number }} options
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function withLock(file, { signal, limitMs = 15 * 60_000 }, work) {
  const deadline = Date.now() + limitMs;
  for (;;) {
    if (signal?.aborted) throw new Interrupted();
    const lock = tryLock(file);
    if ('release' in lock) {
      try {
        return await work();
      } finally {
        lock.release();
      }
    }
    if (Date.now() > deadline) throw new Error(`pid ${lock.holderPid} holds ${file} for too long`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}
