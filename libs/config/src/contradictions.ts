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
  found.push(...redisContradictions(given));
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

const REDIS_FORMS = ['REDIS_URL', 'REDIS_CLUSTER_NODES', 'REDIS_SENTINELS'] as const;

/** What each of these settings needs beside it; [setting, one of these, why]. */
const REDIS_NEEDS: readonly (readonly [SettingName, readonly SettingName[], string])[] = [
  ['REDIS_MASTER_NAME', ['REDIS_SENTINELS'], 'it names what sentinels watch'],
  ['REDIS_SENTINELS', ['REDIS_MASTER_NAME'], 'sentinels are asked for a primary by its name'],
  ['REDIS_SENTINEL_PASSWORD', ['REDIS_SENTINELS'], 'it is for the sentinels alone'],
  ['REDIS_SENTINEL_USERNAME', ['REDIS_SENTINEL_PASSWORD'], 'a user without a password is none'],
  ['REDIS_USERNAME', ['REDIS_PASSWORD'], 'a user without a password is none'],
  ['REDIS_PASSWORD', ['REDIS_CLUSTER_NODES', 'REDIS_SENTINELS'], 'the one of a single node stands in REDIS_URL'],
  ['REDIS_TLS', ['REDIS_CLUSTER_NODES', 'REDIS_SENTINELS'], 'a single node says it by rediss:// in REDIS_URL'],
];

function redisContradictions(given: GivenSettings): Contradiction[] {
  const found: Contradiction[] = [];
  const forms = REDIS_FORMS.filter((name) => given[name] !== undefined);
  if (forms.length > 1) {
    const all = forms.length === 2 ? 'both' : 'all';
    found.push({ about: forms, message: `${forms.join(' and ')} are ${all} set: keep the one that is meant` });
  }
  for (const [name, needs, why] of REDIS_NEEDS) {
    if (given[name] === undefined || needs.some((need) => given[need] !== undefined)) continue;
    found.push({ about: [name, ...needs], message: `${name} needs ${needs.join(' or ')}: ${why}` });
  }
  const encrypted = given.REDIS_TLS ?? given.REDIS_URL?.startsWith('rediss:') ?? false;
  if (given.REDIS_TLS_CA !== undefined && !encrypted)
    found.push({
      about: ['REDIS_TLS_CA', 'REDIS_TLS', 'REDIS_URL'],
      message: 'REDIS_TLS_CA needs rediss:// in REDIS_URL, or REDIS_TLS true: nothing is encrypted without',
    });
  return found;
}
