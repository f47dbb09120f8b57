import { randomInt } from 'node:crypto';
import { closeSync, mkdirSync, openSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Below the ports that operating systems hand out for outgoing connections and for `listen(0)` (Linux from 32768, others from 49152): between
 * the look here and the use nobody gets one of these by chance.
 */
const FIRST_PORT = 20_000;
const LAST_PORT = 32_767;
const MAX_TRIES = 100;
/** A port that was handed out is handed out to nobody else for so long: whoever asked for it listens there by then. */
const CLAIM_MS = 120_000;
/** A node of a Redis Cluster listens for its peers on the port that is so much higher. */
const CLUSTER_BUS_OFFSET = 10_000;

/**
 * Finds a TCP port on 127.0.0.1 that nobody listens on now, for a process that is started soon. No other process of this user is told the same one
 * meanwhile.
 * @param {object} [needs]
 * @param {boolean} [needs.clusterBus] the port of its cluster bus is free as well, and below those of the system, too
 * @returns {Promise<number>}
 */
export async function freePort({ clusterBus = false } = {}) {
  const last = clusterBus ? LAST_PORT - CLUSTER_BUS_OFFSET : LAST_PORT;
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const port = randomInt(FIRST_PORT, last + 1);
    const ports = clusterBus ? [port, port + CLUSTER_BUS_OFFSET] : [port];
    if (ports.every(claim) && (await Promise.all(ports.map(isFree))).every(Boolean)) return port;
  }
  throw new Error(`no free port between ${FIRST_PORT} and ${last} in ${MAX_TRIES} tries`);
}

/**
 * True where nobody was told the port of late. Where claims cannot be kept (no place for temporary files) chance has to do.
 * @param {number} port
 */
function claim(port) {
  const dir = join(tmpdir(), `flash-sale-ports-${process.getuid?.() ?? 'own'}`);
  const file = join(dir, String(port));
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    const claimed = statSync(file, { throwIfNoEntry: false });
    if (claimed !== undefined && Date.now() - claimed.mtimeMs > CLAIM_MS) rmSync(file, { force: true });
    closeSync(openSync(file, 'wx'));
    return true;
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code !== 'EEXIST';
  }
}

/**
 * @param {number} port
 * @returns {Promise<boolean>}
 */
function isFree(port) {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (/** @type {NodeJS.ErrnoException} */ error) => {
      if (error.code === 'EADDRINUSE' || error.code === 'EACCES') resolve(false);
      else reject(error);
    });
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
