import pg from 'pg';
import type { DataSourceOptions } from 'typeorm';
import { connectionPolicy, type ConnectionPolicy, type DatabaseSettings } from './connection-policy.js';
import type { ConnectionWatch } from './connection-watch.js';
import { watchedClientClass, type ClientWatch } from './watched-client.js';

const IDLE_CONNECTION_MS = 30_000;

/** Options of the product's one data source. Entities come from the modules (`autoLoadEntities`); the schema from migrations, never from them. */
export function dataSourceOptions(settings: DatabaseSettings, watch: ConnectionWatch): DataSourceOptions {
  const policy = connectionPolicy(settings.consumer.claimMinIdleMs);
  return {
    type: 'postgres',
    driver: pg,
    synchronize: false,
    logging: false,
    installExtensions: false,
    poolSize: settings.database.poolSize,
    extra: {
      ...sessionConfig(settings.database.url, policy),
      idleTimeoutMillis: IDLE_CONNECTION_MS,
      Client: watchedClientClass(watch.clientWatch(policy)),
    },
    // An idle connection that breaks is dropped by the pool; the next acquire opens a new one. Without a listener the process would end.
    poolErrorHandler: () => undefined,
  };
}

/** A single connection outside the pool, with limits of its own. Has an error listener. */
export function ownConnection(
  url: string,
  policy: ConnectionPolicy,
  watch: Partial<ClientWatch> = {},
): InstanceType<ReturnType<typeof watchedClientClass>> {
  const Client = watchedClientClass({
    answerDeadlineMs: policy.connectTimeoutMs,
    suspectAfterMs: policy.connectTimeoutMs,
    onAnswer: () => undefined,
    onSlow: () => undefined,
    onOpen: () => undefined,
    onClosed: () => undefined,
    ...watch,
  });
  const client = new Client(sessionConfig(url, policy));
  client.on('error', () => undefined);
  return client;
}

/** Session settings travel in the start-up packet: no round trip, and they hold from the first statement on. */
export function sessionConfig(url: string, policy: ConnectionPolicy): pg.ClientConfig {
  return {
    connectionString: url,
    connectionTimeoutMillis: policy.connectTimeoutMs,
    application_name: 'flash-sale',
    statement_timeout: policy.statementTimeoutMs,
    lock_timeout: policy.lockTimeoutMs,
    idle_in_transaction_session_timeout: policy.idleInTransactionTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    // The server's side of the keepalive: sessions of a vanished machine end within half a minute and give up their locks.
    options: '-c tcp_keepalives_idle=15 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3',
  };
}
