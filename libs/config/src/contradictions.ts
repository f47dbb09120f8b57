import type { GivenSettings, SettingName } from './env.js';
import type { Settings } from './settings.js';

/** Two settings, each fine alone, that cannot both hold. */
export interface Contradiction {
  readonly about: readonly SettingName[];
  readonly message: string;
}

/** PostgreSQL waits this long for a locked row before a batch is split (session setting lock_timeout). */
const LOCK_TIMEOUT_MS = 1000;
/** A slow disk still stores a thousand orders in a second. */
const SLOWEST_MS_PER_ENTRY = 1;

/** Names every contradiction between the settings; `settings` holds the effective values, `given` what the environment stated. */
export function contradictions(given: GivenSettings, settings: Settings): Contradiction[] {
  const found: Contradiction[] = [];
  if (given.REDIS_URL !== undefined && given.REDIS_CLUSTER_NODES !== undefined)
    found.push({
      about: ['REDIS_URL', 'REDIS_CLUSTER_NODES'],
      message: 'REDIS_URL and REDIS_CLUSTER_NODES are both set: keep the one that is meant',
    });
  if (given.AUTH_JWT_SECRET !== undefined && given.AUTH_JWKS_URL !== undefined)
    found.push({
      about: ['AUTH_JWT_SECRET', 'AUTH_JWKS_URL'],
      message:
        'AUTH_JWT_SECRET and AUTH_JWKS_URL are both set: tokens are checked in one way only, keep the one that is meant',
    });
  const { consumer, http, shutdownTimeoutMs } = settings;
  const longestBatchMs = LOCK_TIMEOUT_MS + consumer.batchSize * SLOWEST_MS_PER_ENTRY;
  if (consumer.claimMinIdleMs < longestBatchMs)
    found.push({
      about: ['CLAIM_MIN_IDLE_MS', 'CONSUMER_BATCH_SIZE'],
      message:
        `CLAIM_MIN_IDLE_MS (${consumer.claimMinIdleMs} milliseconds) must outlast the longest batch: at least ${longestBatchMs} milliseconds ` +
        `with CONSUMER_BATCH_SIZE ${consumer.batchSize}, else slow work is taken for dead`,
    });
  if (shutdownTimeoutMs <= http.requestTimeoutMs)
    found.push({
      about: ['SHUTDOWN_TIMEOUT_MS', 'REQUEST_TIMEOUT_MS'],
      message:
        `SHUTDOWN_TIMEOUT_MS (${shutdownTimeoutMs} milliseconds) must be above REQUEST_TIMEOUT_MS (${http.requestTimeoutMs} milliseconds), ` +
        'else running requests cannot be answered before the end',
    });
  return found;
}
