import type { ClusterOptions, RedisOptions } from 'ioredis';
import type { RedisSettings } from '#config';

const RECONNECT_FIRST_MS = 50;
const RECONNECT_LIMIT_MS = 1000;
const CONNECT_TIMEOUT_MS = 2000;
/** A server that loads its data is asked again after this time, however long it says the loading will take. */
const LOADING_RETRY_MS = 500;
const KEEP_ALIVE_MS = 10_000;
/** At most one reconnect per this time because the server answered READONLY or MASTERDOWN: one per batch would only churn. */
const RECONNECT_ON_STATE_MS = 5000;

/** How long a connection waits. Milliseconds; `commandTimeoutMs` undefined where commands block on purpose. */
export interface ConnectionTimeouts {
  readonly commandTimeoutMs: number | undefined;
  /** The socket is given up when an answer is owed and nothing arrives for this long: notices frozen servers. */
  readonly socketTimeoutMs: number;
}

/** Timeouts of a connection whose commands answer at once: below the request's limit, the socket's a little above it. */
export function commandTimeouts(requestTimeoutMs: number): ConnectionTimeouts {
  return {
    commandTimeoutMs: Math.max(1, Math.floor(requestTimeoutMs * 0.8)),
    socketTimeoutMs: aLittleAbove(requestTimeoutMs),
  };
}

/** Timeouts of a connection that blocks for `blockMs`: longer than the block by the time an answer may take. */
export function blockingTimeouts(blockMs: number, requestTimeoutMs: number): ConnectionTimeouts {
  return { commandTimeoutMs: undefined, socketTimeoutMs: blockMs + aLittleAbove(requestTimeoutMs) };
}

function aLittleAbove(requestTimeoutMs: number): number {
  return requestTimeoutMs + Math.ceil(requestTimeoutMs / 10);
}

/** Pause before the n-th attempt: doubles up to a second, with jitter so that processes do not return in step. */
export function reconnectDelayMs(attempt: number, random: () => number = Math.random): number {
  const ceiling = Math.min(RECONNECT_LIMIT_MS, RECONNECT_FIRST_MS * 2 ** Math.min(attempt, 10));
  return Math.ceil(ceiling / 2 + (ceiling / 2) * random());
}

/**
 * The retry policy: nothing waits in an offline queue, nothing is sent a second time by the driver, an unanswered command is an error.
 * Whoever called decides what to repeat.
 */
export function nodeOptions(name: string, timeouts: ConnectionTimeouts): RedisOptions {
  let reconnectedAtMs = 0;
  return {
    connectionName: name,
    disableClientInfo: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    // Whoever subscribes does it anew after a loss; nobody hears of it where the driver's own try fails.
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    connectTimeout: CONNECT_TIMEOUT_MS,
    maxLoadingRetryTime: LOADING_RETRY_MS,
    keepAlive: KEEP_ALIVE_MS,
    socketTimeout: timeouts.socketTimeoutMs,
    ...(timeouts.commandTimeoutMs === undefined ? {} : { commandTimeout: timeouts.commandTimeoutMs }),
    retryStrategy: (attempt) => reconnectDelayMs(attempt),
    // A demoted primary stays connected: a new connection may lead (DNS, proxy) to its successor. `1`: without sending again.
    reconnectOnError: (error) => {
      if (!/^(READONLY|MASTERDOWN)/.test(error.message)) return false;
      if (Date.now() - reconnectedAtMs < RECONNECT_ON_STATE_MS) return false;
      reconnectedAtMs = Date.now();
      return 1;
    },
  };
}

/** The address and options of a single node. The driver would let the scheme rediss:// win over the authority that is given. */
export function singleNode(
  settings: RedisSettings,
  name: string,
  timeouts: ConnectionTimeouts,
): { readonly url: string; readonly options: RedisOptions } {
  const url = settings.url ?? 'redis://127.0.0.1:6379';
  const options = nodeOptions(name, timeouts);
  if (!url.startsWith('rediss:')) return { url, options };
  return { url: url.replace(/^rediss:/, 'redis:'), options: { ...options, ...encryption(settings, true) } };
}

/**
 * The same policy for the primary that sentinels name. A frozen sentinel is left for the next one. A switch of the primary is
 * noticed by the socket's timeout, READONLY, or because sentinels cut a demoted server's clients. The driver's own detector of switches is not used: one
 * that is heard while a connection is being opened ends that connection for good.
 */
export function sentinelOptions(settings: RedisSettings, name: string, timeouts: ConnectionTimeouts): RedisOptions {
  const { sentinel } = settings;
  if (sentinel === undefined) throw new TypeError('no sentinels are given');
  const { tls } = encryption(settings, settings.tls);
  return {
    ...nodeOptions(name, timeouts),
    ...settings.credentials,
    sentinels: sentinel.nodes.map(({ host, port }) => ({ host, port })),
    name: sentinel.masterName,
    role: 'master',
    ...(sentinel.credentials === undefined
      ? {}
      : { sentinelUsername: sentinel.credentials.username, sentinelPassword: sentinel.credentials.password }),
    ...(tls === undefined ? {} : { tls, sentinelTLS: tls, enableTLSForSentinelMode: true }),
    sentinelRetryStrategy: (attempt) => reconnectDelayMs(attempt),
    sentinelCommandTimeout: CONNECT_TIMEOUT_MS,
  };
}

/** The same policy for one node of a cluster, wherever it stands. */
export function clusterNodeOptions(settings: RedisSettings, name: string, timeouts: ConnectionTimeouts): RedisOptions {
  return { ...nodeOptions(name, timeouts), ...settings.credentials, ...encryption(settings, settings.tls) };
}

/** The same policy for a cluster, for FailFastCluster. Redirections are followed by the driver: a redirected command had no effect. */
export function clusterOptions(settings: RedisSettings, name: string, timeouts: ConnectionTimeouts): ClusterOptions {
  // The driver sets these two for the nodes itself: a node is connected on first use, and forgotten when it is lost.
  const {
    retryStrategy: _retry,
    enableOfflineQueue: _queue,
    ...redisOptions
  } = clusterNodeOptions(settings, name, timeouts);
  return {
    // A certificate is for a name: the driver's own look-up would leave an address.
    ...(settings.tls === true ? { dnsLookup: (host, answer) => answer(null, host) } : {}),
    clusterRetryStrategy: (attempt) => reconnectDelayMs(attempt),
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    retryDelayOnTryAgain: 20,
    slotsRefreshTimeout: CONNECT_TIMEOUT_MS,
    slotsRefreshInterval: 5000,
    redisOptions,
  };
}

function encryption(settings: RedisSettings, encrypted: boolean | undefined): Pick<RedisOptions, 'tls'> {
  if (encrypted !== true) return {};
  return { tls: settings.tlsCa === undefined ? {} : { ca: settings.tlsCa } };
}
