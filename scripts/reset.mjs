import { existsSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { parseArgs } from 'node:util';
import { dataFolder } from './services/data-folder.mjs';
import { endLeftovers } from './services/run-file.mjs';
import { tryLock } from './setup/file-lock.mjs';
import { projectRoot } from './setup/project-root.mjs';
import { StartFailure, tellFailure } from './setup/start-failure.mjs';

/**
 * Removes the data that npm start keeps: orders, vouchers, secrets, logs. Installed tools stay.
 * @returns {Promise<string>} what was done, in words
 */
async function reset() {
  const { values } = parseArgs({ options: { yes: { type: 'boolean', short: 'y' }, 'data-dir': { type: 'string' } } });
  const data = dataFolder(values['data-dir'] === undefined ? join(projectRoot, '.data') : resolve(values['data-dir']));
  const places = [data.redis, data.postgres, `${data.postgres}.new`, data.logs, data.jwtSecret, data.postgresPassword];
  const present = places.filter((place) => existsSync(place));
  if (present.length === 0) return `There is no data in ${data.root}.`;
  const lock = tryLock(data.startLock);
  if (!('release' in lock)) {
    throw new StartFailure({
      what: 'The data is in use',
      why: `npm start (pid ${lock.holderPid}) runs on ${data.root}`,
      next: `Stop it first: kill ${lock.holderPid}`,
    });
  }
  try {
    if (values.yes !== true && !(await isAgreed(data.root))) return 'Nothing was removed.';
    await endLeftovers(data.runFile);
    for (const place of present) rmSync(place, { recursive: true, force: true });
    return `Removed: ${present.join(', ')}`;
  } finally {
    lock.release();
  }
}

/** @param {string} root */
async function isAgreed(root) {
  if (process.stdin.isTTY !== true) {
    throw new StartFailure({
      what: 'Nobody was there to ask',
      why: 'the input is no terminal',
      next: 'npm run reset -- --yes',
    });
  }
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const answer = await terminal.question(`Remove all orders, vouchers, secrets and logs in ${root}? Type yes: `);
  terminal.close();
  return answer.trim().toLowerCase() === 'yes';
}

reset().then(
  (done) => process.stdout.write(`${done}\n`),
  (error) => {
    process.stderr.write(`${tellFailure(error, 'npm run reset', process.env['LOG_LEVEL'])}\n`);
    process.exitCode = 1;
  },
);
