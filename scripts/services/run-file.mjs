import { existsSync, readFileSync, rmSync } from 'node:fs';
import { writePrivately } from './data-folder.mjs';
import { endProcess, identify, isLiving } from './process-identity.mjs';

/**
 * @typedef {import('./process-identity.mjs').ProcessIdentity} ProcessIdentity
 * @typedef {object} RunFile
 * @property {ProcessIdentity} supervisor the start command
 * @property {(ProcessIdentity & { name: string })[]} processes what it started
 * @property {import('./banner.mjs').RunReport | undefined} [report] there when the product is ready
 */

/**
 * The note of the last start in the data folder; undefined where there is none that can be read.
 * @param {string} file
 * @returns {RunFile | undefined}
 */
export function readRunFile(file) {
  if (!existsSync(file)) return undefined;
  try {
    const run = JSON.parse(readFileSync(file, 'utf8'));
    return typeof run?.supervisor?.pid === 'number' && Array.isArray(run.processes) ? run : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Notes down what runs, so that another command finds it, and the next start ends what a kill -9 left over.
 * @param {string} file
 * @param {{ name: string, pid: number }[]} processes
 * @param {import('./banner.mjs').RunReport} [report]
 */
export function writeRunFile(file, processes, report) {
  const supervisor = identify(process.pid);
  const identities = processes.flatMap(({ name, pid }) => {
    const identity = identify(pid);
    return identity === undefined ? [] : [{ name, ...identity }];
  });
  writePrivately(file, `${JSON.stringify({ supervisor, processes: identities, report }, undefined, 2)}\n`);
}

/** @param {string} file */
export function removeRunFile(file) {
  rmSync(file, { force: true });
}

/**
 * The note of a start that still runs.
 * @param {string} file
 * @returns {RunFile | undefined}
 */
export function runningStart(file) {
  const run = readRunFile(file);
  return run !== undefined && isLiving(run.supervisor) ? run : undefined;
}

/**
 * Ends what an earlier start left running when it was killed: the API first, then its stores.
 * @param {string} file
 * @returns {Promise<string[]>} what was ended, in words
 */
export async function endLeftovers(file) {
  const run = readRunFile(file);
  if (run === undefined || isLiving(run.supervisor)) return [];
  const left = run.processes.filter((identity) => isLiving(identity));
  for (const identity of [...left].reverse()) {
    const signal = identity.name === 'PostgreSQL' ? 'SIGINT' : 'SIGTERM';
    await endProcess(identity, [{ signal, limitMs: 5000 }]);
  }
  removeRunFile(file);
  return left.map(({ name, pid }) => `${name} (pid ${pid})`);
}
