import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * Below the ports that operating systems hand out for outgoing connections and for `listen(0)` (Linux from 32768, others from 49152): between
 * the look here and the use nobody gets one of these by chance.
 */
const FIRST_PORT = 20_000;
const LAST_PORT = 32_767;
const MAX_TRIES = 100;
/** A node of a Redis Cluster listens for its peers on the port that is so much higher. */
const CLUSTER_BUS_OFFSET = 10_000;

/**
 * Finds a TCP port on 127.0.0.1 that nobody listens on now, for a process that is started soon.
 * @param {object} [needs]
 * @param {boolean} [needs.clusterBus] the port of its cluster bus is free as well, and below those of the system, too
 * @returns {Promise<number>}
 */
export async function freePort({ clusterBus = false } = {}) {
  const last = clusterBus ? LAST_PORT - CLUSTER_BUS_OFFSET : LAST_PORT;
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const port = randomInt(FIRST_PORT, last + 1);
    if ((await isFree(port)) && (!clusterBus || (await isFree(port + CLUSTER_BUS_OFFSET)))) return port;
  }
  throw new Error(`no free port between ${FIRST_PORT} and ${last} in ${MAX_TRIES} tries`);
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
