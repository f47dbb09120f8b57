import type { Logger } from '@nestjs/common';
import { Cluster, type Redis } from 'ioredis';
import { connectionErrors, connectionUp } from './metrics.js';

const LOG_PAUSE_MS = 10_000;

/** Listens to one connection, so that an error never ends the process: counts, and logs state changes and errors at a bounded rate. */
export class ConnectionWatch {
  private loggedAtMs = -LOG_PAUSE_MS;
  private unlogged = 0;
  private wasReady: boolean | undefined;
  private stopped = false;

  constructor(
    private readonly name: string,
    private readonly logger: Logger,
  ) {}

  follow(connection: Redis | Cluster): void {
    connectionUp.set({ connection: this.name }, 0);
    connection.on('error', (error: unknown) => this.failed(error));
    connection.on('ready', () => this.changed(true));
    connection.on('close', () => this.changed(false));
    if (connection instanceof Cluster) {
      connection.on('node error', (error: unknown) => this.failed(error));
      connection.on('+node', (node: Redis) => dropSocketTimerOnClose(node));
    } else {
      dropSocketTimerOnClose(connection);
    }
  }

  /** The connection is closed on purpose: nothing more to tell. The listeners stay, for a late error. */
  stop(): void {
    this.stopped = true;
    connectionUp.remove({ connection: this.name });
  }

  private changed(ready: boolean): void {
    if (this.stopped) return;
    connectionUp.set({ connection: this.name }, ready ? 1 : 0);
    if (this.wasReady === ready) return;
    if (ready) {
      this.logger.log(`Redis connection "${this.name}" is ready`);
      this.loggedAtMs = -LOG_PAUSE_MS;
    } else if (this.wasReady === true) {
      this.logger.warn(`Redis connection "${this.name}" is lost; reconnecting`);
    }
    this.wasReady = ready;
  }

  /** The message alone: the driver's errors carry the command's arguments, a password among them. */
  private failed(error: unknown): void {
    if (this.stopped) return;
    connectionErrors.inc({ connection: this.name });
    const nowMs = performance.now();
    if (nowMs - this.loggedAtMs < LOG_PAUSE_MS) {
      this.unlogged += 1;
      return;
    }
    const more = this.unlogged > 0 ? ` (and ${this.unlogged} more since)` : '';
    this.logger.warn(`Redis connection "${this.name}": ${error instanceof Error ? error.message : 'error'}${more}`);
    this.loggedAtMs = nowMs;
    this.unlogged = 0;
  }
}

/** The driver lets the socket timer of a closed connection run on; it would then cut the next, healthy one. */
function dropSocketTimerOnClose(node: Redis): void {
  node.on('close', () => {
    const timed = node as unknown as { socketTimeoutTimer?: NodeJS.Timeout | undefined };
    clearTimeout(timed.socketTimeoutTimer);
    timed.socketTimeoutTimer = undefined;
  });
}
