import { Inject, Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { Cluster, Redis } from 'ioredis';
import { type RedisSettings, SETTINGS, type Settings } from '#config';
import {
  blockingTimeouts,
  clusterNodeOptions,
  clusterOptions,
  commandTimeouts,
  type ConnectionTimeouts,
  sentinelOptions,
  singleNode,
} from './connection-options.js';
import { ConnectionWatch } from './connection-watch.js';
import { FailFastCluster } from './fail-fast-cluster.js';
import { connectToOwner } from './slot-owner.js';

/** A connection to a single node (also one that sentinels name) or to a cluster: same commands, and both reject at once where no answer can come. */
export type RedisConnection = Redis | Cluster;

/**
 * Every connection of this process. They open by themselves, come back by themselves, and close in onApplicationShutdown, after all
 * modules have stopped. No error of theirs ever ends the process.
 */
@Injectable()
export class RedisConnections implements OnApplicationShutdown {
  /** For every command that answers at once. Fails fast: no offline queue, no second sending, a timeout below the request's. */
  readonly command: RedisConnection;
  /** For admission alone: its WAIT blocks the whole connection, and nothing slow may stand before a purchase. */
  readonly admission: RedisConnection;

  private readonly logger = new Logger(RedisConnections.name);
  private readonly open = new Map<RedisConnection, ConnectionWatch>();

  constructor(@Inject(SETTINGS) private readonly settings: Settings) {
    const timeouts = commandTimeouts(settings.http.requestTimeoutMs);
    this.command = this.connect('command', timeouts);
    this.admission = this.connect('admission', timeouts);
  }

  /**
   * A connection of its own for blocking reads of the key, of up to CONSUMER_BLOCK_MS. In a cluster it is one connection to the primary that owns the key's
   * slot, and follows it. A lost or frozen server rejects the read; the connection returns by itself. End it with `close`; else it is closed at
   * shutdown. `close` ends a blocked read at once.
   */
  openBlocking(name: string, key: string): RedisConnection {
    const { redis } = this.settings;
    const { command, blocking } = this;
    if (!(command instanceof Cluster)) return this.connect(name, blocking);
    const options = clusterNodeOptions(redis, name, blocking);
    return this.watch(name, connectToOwner(command, key, redis.clusterNodes ?? [], options));
  }

  /** A connection of its own that waits for messages. It returns by itself; what it had subscribed to is then forgotten. End it with `close`. */
  openSubscriber(name: string): RedisConnection {
    return this.connect(name, this.blocking);
  }

  /** Closes one connection at once; what it owed is rejected. Closing twice is harmless. */
  close(connection: RedisConnection): void {
    this.open.get(connection)?.stop();
    this.open.delete(connection);
    connection.disconnect();
  }

  /** True while commands can be sent now. Says nothing about the server's state. */
  isReady(connection: RedisConnection = this.command): boolean {
    return connection.status === 'ready';
  }

  /** Resolves to true once all of them are ready (default: command and admission), to false after `limitMs` or when one is closed. Never rejects. */
  async whenReady(
    limitMs: number,
    connections: readonly RedisConnection[] = [this.command, this.admission],
  ): Promise<boolean> {
    const states = await Promise.all(connections.map((each) => becomesReady(each, limitMs)));
    return states.every(Boolean);
  }

  onApplicationShutdown(): void {
    for (const connection of [...this.open.keys()]) this.close(connection);
  }

  private get blocking(): ConnectionTimeouts {
    const { consumer, http } = this.settings;
    return blockingTimeouts(consumer.blockMs, http.requestTimeoutMs);
  }

  private connect(name: string, timeouts: ConnectionTimeouts): RedisConnection {
    return this.watch(name, open(this.settings.redis, name, timeouts));
  }

  private watch(name: string, connection: RedisConnection): RedisConnection {
    const watch = new ConnectionWatch(name, this.logger);
    watch.follow(connection);
    this.open.set(connection, watch);
    return connection;
  }
}

function open(settings: RedisSettings, name: string, timeouts: ConnectionTimeouts): RedisConnection {
  if (settings.clusterNodes !== undefined)
    return new FailFastCluster([...settings.clusterNodes], clusterOptions(settings, name, timeouts));
  if (settings.sentinel !== undefined) return new Redis(sentinelOptions(settings, name, timeouts));
  const { url, options } = singleNode(settings, name, timeouts);
  return new Redis(url, options);
}

function becomesReady(connection: RedisConnection, limitMs: number): Promise<boolean> {
  if (connection.status === 'ready') return Promise.resolve(true);
  return new Promise((resolve) => {
    const settle = (ready: boolean) => {
      clearTimeout(timer);
      connection.off('ready', onReady);
      connection.off('end', onEnd);
      resolve(ready);
    };
    const onReady = () => settle(true);
    const onEnd = () => settle(false);
    const timer = setTimeout(onEnd, limitMs);
    connection.on('ready', onReady);
    connection.on('end', onEnd);
  });
}
