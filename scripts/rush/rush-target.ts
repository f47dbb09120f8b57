import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readSettings, type Settings } from '#config';
import { startProduct } from '../services/product.mjs';
import { projectRoot } from '../setup/project-root.mjs';
import { Killer } from './killer.js';
import type { RushOptions } from './options.js';

/** The service that is rushed at. */
export interface RushTarget {
  readonly urls: readonly string[];
  /** API processes as far as they are known. */
  readonly processes: number;
  readonly secret: string;
  /** Where its stores are, or why they cannot be looked at. */
  readonly stores: { readonly settings: Settings } | { readonly unknown: string };
  /** Where processes are to be killed meanwhile (--kill-every). */
  readonly killer: Killer | undefined;
  stop(): Promise<void>;
}

/** It cannot be rushed; the message says why and what to do. */
export class NoTargetError extends Error {
  readonly code = 'NO_TARGET';
}

/** Starts a service of its own, or takes the one that was named. @throws NoTargetError, StartFailure */
export async function openTarget(options: RushOptions, signal: AbortSignal): Promise<RushTarget> {
  return options.urls.length > 0 ? namedTarget(options.urls) : startTarget(options, signal);
}

async function startTarget({ processes, killEveryMs }: RushOptions, signal: AbortSignal): Promise<RushTarget> {
  // A service of its own, with stores of its own, that checks the tokens which are made here.
  delete process.env['AUTH_JWKS_URL'];
  const product = await startProduct({
    apiProcesses: processes,
    signal,
    env: { LOG_LEVEL: 'warn', API_PROCESSES: '1', ...(killEveryMs === undefined ? {} : UNDER_FIRE) },
    ...(killEveryMs === undefined ? {} : { workerProcesses: processes, restarts: true }),
  });
  const { urls, secret, redisUrl, databaseUrl } = product;
  return {
    urls,
    processes,
    secret,
    stores: storeSettings({
      ...process.env,
      REDIS_CLUSTER_NODES: undefined,
      REDIS_SENTINELS: undefined,
      REDIS_MASTER_NAME: undefined,
      REDIS_URL: redisUrl,
      DATABASE_URL: databaseUrl,
    }),
    killer: killEveryMs === undefined ? undefined : new Killer(product, killEveryMs),
    stop: () => product.stop(),
  };
}

/** Workers store the orders. What a killed one had in hand is taken over within seconds. */
const UNDER_FIRE = { CONSUMER_ENABLED: 'false', CLAIM_MIN_IDLE_MS: '3000', CONSUMER_BLOCK_MS: '500' };

function namedTarget(urls: readonly string[]): RushTarget {
  const { DATABASE_URL, REDIS_URL, REDIS_CLUSTER_NODES, REDIS_SENTINELS } = process.env;
  const named = Boolean(DATABASE_URL) && Boolean(REDIS_URL || REDIS_CLUSTER_NODES || REDIS_SENTINELS);
  return {
    urls,
    processes: urls.length,
    secret: process.env['AUTH_JWT_SECRET'] || keptSecret(),
    stores: named
      ? storeSettings(process.env)
      : { unknown: 'DATABASE_URL and REDIS_URL (or REDIS_CLUSTER_NODES, REDIS_SENTINELS) are not given' },
    killer: undefined,
    stop: () => Promise.resolve(),
  };
}

function keptSecret(): string {
  const file = join(projectRoot, '.data/jwt-secret');
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    throw new NoTargetError(`No secret to sign tokens with: set AUTH_JWT_SECRET to the service's (${file} is missing)`);
  }
}

function storeSettings(env: NodeJS.ProcessEnv): RushTarget['stores'] {
  const read = readSettings({ ...env, CONSUMER_ENABLED: 'false' }, { authRequired: false });
  return read.ok ? { settings: read.settings } : { unknown: read.problems.join('; ') };
}
