import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The places inside a data folder (`.data` for `npm start`). One page that knows them all.
 * @param {string} root
 */
export function dataFolder(root) {
  return {
    root,
    redis: join(root, 'redis'),
    postgres: join(root, 'postgres'),
    logs: join(root, 'logs'),
    tools: join(root, 'tools'),
    jwtSecret: join(root, 'jwt-secret'),
    postgresPassword: join(root, 'postgres-password'),
    runFile: join(root, 'run.json'),
    startLock: join(root, 'start.lock'),
    setUpLock: join(root, 'set-up.lock'),
  };
}

/** @typedef {ReturnType<typeof dataFolder>} DataFolder */

/**
 * The secret kept in the file; made at random (mode 0600) where there is none yet.
 * @param {string} file
 * @returns {string}
 */
export function keptSecret(file) {
  const kept = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
  if (kept !== '') return kept;
  mkdirSync(join(file, '..'), { recursive: true });
  const secret = randomBytes(32).toString('base64url');
  writePrivately(file, `${secret}\n`);
  return secret;
}

/**
 * Replaces the file at once, readable by its owner only: a reader sees the old text or the new one.
 * @param {string} file
 * @param {string} text
 */
export function writePrivately(file, text) {
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, text, { mode: 0o600 });
  renameSync(draft, file);
}

const LOG_LIMIT_BYTES = 20 * 1024 * 1024;

/**
 * Sets a log aside as `<file>.1` where it has grown beyond its limit. Called before a service starts to write.
 * @param {string} file
 */
export function rotateLog(file) {
  if (existsSync(file) && statSync(file).size > LOG_LIMIT_BYTES) {
    rmSync(`${file}.1`, { force: true });
    renameSync(file, `${file}.1`);
  }
}

/**
 * The last lines of a log.
 * @param {string} file
 * @param {number} [fromByte] what stood before is not looked at
 * @returns {string}
 */
export function logTail(file, fromByte = 0) {
  if (!existsSync(file)) return '';
  return readFileSync(file)
    .subarray(fromByte)
    .subarray(-64 * 1024)
    .toString('utf8');
}

/** @param {string} file */
export function fileSize(file) {
  return existsSync(file) ? statSync(file).size : 0;
}
