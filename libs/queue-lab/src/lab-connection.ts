import { Redis } from 'ioredis';

/** How long a blocking call waits before it looks whether it should end. Seconds, as Redis takes it. */
export const BLOCK_SECONDS = 1;

/** A connection for the laboratory: reconnects for ever every 50 ms, keeps nothing for later, repeats nothing by itself. */
export function openLabConnection(url: string): Redis {
  const connection = new Redis(url, {
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    enableOfflineQueue: false,
    retryStrategy: () => 50,
  });
  // Trouble shows in the calls; without a listener the driver would print every attempt.
  connection.on('error', () => undefined);
  // Every order on offer waits for the connection by a listener of its own.
  connection.setMaxListeners(0);
  return connection;
}

/** Resolves when the connection can send; rejects after ten seconds. */
export function whenReady(connection: Redis): Promise<void> {
  if (connection.status === 'ready') return Promise.resolve();
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('Redis is not reachable')), 10_000);
    connection.once('ready', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** Runs `step` until `closed()`; after an error it waits for the connection and goes on. The limit of patience is ten seconds without Redis. */
export async function keepWorking(connection: Redis, closed: () => boolean, step: () => Promise<void>): Promise<void> {
  while (!closed()) {
    try {
      await step();
    } catch (error) {
      if (closed()) return;
      if (connection.status === 'ready') throw error;
      await whenReady(connection);
    }
  }
}
