import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';

/**
 * A process that can be told from a later one with the same pid.
 * @typedef {{ pid: number, startedAt: string }} ProcessIdentity
 */

/**
 * The identity of a living process, or undefined where there is none (a zombie has ended).
 * @param {number | undefined} pid
 * @returns {ProcessIdentity | undefined}
 */
export function identify(pid) {
  if (pid === undefined || !exists(pid)) return undefined;
  const startedAt = process.platform === 'linux' ? linuxStart(pid) : psStart(pid);
  return startedAt === undefined ? undefined : { pid, startedAt };
}

/**
 * Whether exactly this process still lives.
 * @param {ProcessIdentity} identity
 */
export function isLiving(identity) {
  return identify(identity.pid)?.startedAt === identity.startedAt;
}

/** @param {number} pid */
function exists(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === 'EPERM';
  }
}

/** @param {number} pid */
function linuxStart(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The command name in parentheses may hold blanks; state and start time are counted from its end.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

/** @param {number} pid */
function psStart(pid) {
  try {
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim() || undefined;
  } catch {
    return undefined;
  }
}

/**
 * Resolves to true when the condition holds, to false after the limit.
 * @param {() => boolean} condition
 * @param {number} limitMs
 * @param {number} [everyMs]
 */
export async function holdsWithin(condition, limitMs, everyMs = 25) {
  const deadline = Date.now() + limitMs;
  while (!condition()) {
    if (Date.now() >= deadline) return false;
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
  return true;
}

/**
 * Ends a process: the first signal, and where it does not end in time the next, up to SIGKILL. Resolves when it is gone.
 * @param {ProcessIdentity} identity
 * @param {{ signal: NodeJS.Signals, limitMs: number }[]} steps
 * @returns {Promise<boolean>} whether it ended by itself, without SIGKILL
 */
export async function endProcess(identity, steps) {
  for (const { signal, limitMs } of steps) {
    if (!isLiving(identity)) return true;
    sendSignal(identity.pid, signal);
    if (await holdsWithin(() => !isLiving(identity), limitMs)) return true;
  }
  sendSignal(identity.pid, 'SIGKILL');
  await holdsWithin(() => !isLiving(identity), 2000);
  return false;
}

/**
 * @param {number} pid
 * @param {NodeJS.Signals} signal
 */
function sendSignal(pid, signal) {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'ESRCH') throw error;
  }
}

/**
 * Ends the processes, other than this one, that carry the mark `NAME=value` in the environment they were started with. The value must be random: then they can
 * only be descendants of whoever made it up. Only Linux tells environments; elsewhere nothing is found.
 * @param {string} mark
 * @returns {Promise<string[]>} what was ended, in words
 */
export async function endMarked(mark) {
  if (process.platform !== 'linux') return [];
  const marked = readdirSync('/proc')
    .filter(
      (name) => /^\d+$/.test(name) && Number(name) !== process.pid && readWords(`/proc/${name}/environ`).includes(mark),
    )
    .map((name) => ({ identity: identify(Number(name)), words: readWords(`/proc/${name}/cmdline`) }));
  const ended = marked.flatMap(({ identity, words }) => {
    if (identity === undefined) return [];
    return [
      endProcess(identity, [{ signal: 'SIGTERM', limitMs: 2000 }]).then(
        () => `${words[0] ?? 'process'} (pid ${identity.pid})`,
      ),
    ];
  });
  return Promise.all(ended);
}

/** @param {string} file */
function readWords(file) {
  try {
    return readFileSync(file, 'utf8').split('\0');
  } catch {
    return [];
  }
}
