import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { lastLines, runCommand } from './command.mjs';
import { StartFailure } from './start-failure.mjs';

const STAMP = 'node_modules/.installed-lock';

/**
 * Whether node_modules holds what package-lock.json says, for this platform.
 * @param {string} root
 * @returns {boolean}
 */
export function dependenciesAreInstalled(root) {
  const stamp = stampOf(root);
  if (readOrEmpty(join(root, STAMP)) === stamp) return true;
  // Somebody ran npm himself: what npm noted down about its work decides.
  const hidden = readOrEmpty(join(root, 'node_modules/.package-lock.json'));
  if (
    hidden === '' ||
    !installedMatchesLock(JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')), JSON.parse(hidden))
  ) {
    return false;
  }
  writeFileSync(join(root, STAMP), stamp);
  return true;
}

/**
 * @typedef {{ version?: string, optional?: boolean, peer?: boolean, link?: boolean, os?: string[], cpu?: string[], libc?: string[] }} LockEntry
 * @typedef {{ packages?: Record<string, LockEntry> }} Lock
 */

/**
 * Whether npm's note of what it installed covers the lock: same versions, nothing missing but optional packages of other platforms.
 * @param {Lock} lock
 * @param {Lock} installed
 * @param {{ platform: string, arch: string }} [host]
 * @returns {boolean}
 */
export function installedMatchesLock(lock, installed, host = { platform: process.platform, arch: process.arch }) {
  const present = installed.packages ?? {};
  return Object.entries(lock.packages ?? {}).every(([path, entry]) => {
    if (path === '') return true;
    const there = present[path];
    if (there !== undefined) return there.version === entry.version;
    return entry.optional === true && !fits(entry, host);
  });
}

/**
 * @param {LockEntry} entry
 * @param {{ platform: string, arch: string }} host
 */
function fits({ os, cpu, libc }, { platform, arch }) {
  // One that names no platform comes with one that does; of two that differ by the C library only one is installed.
  if (libc !== undefined || (os === undefined && cpu === undefined)) return false;
  return (os === undefined || os.includes(platform)) && (cpu === undefined || cpu.includes(arch));
}

/**
 * Installs exactly what the lock says, development packages too whatever NODE_ENV is.
 * @param {string} root
 * @param {{ logFile: string, signal?: AbortSignal | undefined }} options
 */
export async function installDependencies(root, { logFile, signal }) {
  const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error', '--include=dev', '--include=optional'];
  const npmScript = process.env['npm_execpath'];
  const viaNode = npmScript !== undefined && /npm-cli\.c?js$/.test(npmScript) && existsSync(npmScript);
  const { code, tail } = viaNode
    ? await runCommand(process.execPath, [npmScript, ...args], { cwd: root, logFile, signal })
    : await runCommand('npm', args, { cwd: root, logFile, signal });
  if (code !== 0) throw installFailure(code, tail, logFile);
  writeFileSync(join(root, STAMP), stampOf(root));
}

/**
 * What a failed `npm ci` means for the person.
 * @param {number} code
 * @param {string} output
 * @param {string} log
 */
export function installFailure(code, output, log) {
  const what = 'Installing the dependencies (npm ci) failed';
  if (code === 127)
    return new StartFailure({
      what,
      why: 'npm was not found',
      next: 'Install npm (it comes with Node.js), then run it again.',
      log,
    });
  const why = lastLines(output.replace(/^npm (error|ERR!) ?/gm, '').replace(/^A complete log of this run.*$/gm, ''));
  return new StartFailure({ what, why: why || `npm ended with code ${code}`, next: installRemedy(output), log });
}

/** @param {string} output */
function installRemedy(output) {
  if (/ENOSPC|EDQUOT|no space left/i.test(output))
    return 'Free some space (df -h .), about 1 GB is needed, then run it again.';
  if (/EACCES|EPERM|EROFS/.test(output))
    return 'Give your user the right to write into this folder (ls -la), then run it again.';
  if (/ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|network/i.test(output)) {
    return "Check the network and npm's settings (npm ping; npm config get proxy), then run it again.";
  }
  if (/EUSAGE|in sync/.test(output))
    return 'package.json and package-lock.json differ: run npm install, then run it again.';
  return 'Read the log, run npm ci by hand to see more, then run it again.';
}

/** @param {string} root */
function stampOf(root) {
  const lock = readFileSync(join(root, 'package-lock.json'));
  return `${createHash('sha256').update(lock).digest('hex')} ${process.platform}-${process.arch}\n`;
}

/** @param {string} file */
function readOrEmpty(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
