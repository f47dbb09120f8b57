import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readSettings, type Settings } from '#config';
import { type Product, startProduct } from '../services/product.mjs';
import { projectRoot } from '../setup/project-root.mjs';
import type { RushOptions } from './options.js';

/** The service that is rushed at. */
export interface RushTarget {
  readonly urls: readonly string[];
  /** API processes as far as they are known. */
  readonly processes: number;
  readonly secret: string;
  /** Where its stores are, or why they cannot be looked at. */
  readonly stores: { readonly settings: Settings } | { readonly unknown: string };
  /** Processes killed so far (--kill-every). */
  kills(): number;
  startKilling(): void;
  stopKilling(): void;
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
  const killer = killEveryMs === undefined ? undefined : new Killer(product, killEveryMs);
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
    kills: () => killer?.kills ?? 0,
    startKilling: () => killer?.start(),
    stopKilling: () => killer?.stop(),
    stop: () => {
      killer?.stop();
      return product.stop();
    },
  };
}

/** Workers store the orders. What a killed one had in hand is taken over within seconds. */
const UNDER_FIRE = { CONSUMER_ENABLED: 'false', CLAIM_MIN_IDLE_MS: '3000', CONSUMER_BLOCK_MS: '500' };

/**
 * Kills the processes of ours in turn, one at a time. The last one of its kind that is up is spared until another has come back: a crowd that meets
 * nobody proves nothing.
 */
class Killer {
  private timer: NodeJS.Timeout | undefined;
  private turn = 0;
  kills = 0;

  constructor(
    private readonly product: Product,
    private readonly everyMs: number,
  ) {}

  start(): void {
    this.timer ??= setInterval(() => this.kill(), this.everyMs);
  }

  stop(): void {
    clearInterval(this.timer);
  }

  private kill(): void {
    const up = this.product.processes().filter(({ isUp }) => isUp);
    const kinds = [/API process/, /^worker/].map((kind) => up.filter(({ name }) => kind.test(name)));
    const candidates = kinds.flatMap((kind) => (kind.length > 1 ? kind : []));
    const victim = candidates[this.turn++ % Math.max(1, candidates.length)];
    if (victim === undefined) return;
    process.kill(victim.pid, 'SIGKILL');
    this.kills += 1;
  }
}

function namedTarget(urls: readonly string[]): RushTarget {
  const { DATABASE_URL, REDIS_URL, REDIS_CLUSTER_NODES, REDIS_SENTINELS } = process.env;
  const named = Boolean(DATABASE_URL) && Boolean(REDIS_URL || REDIS_CLUSTER_NODES || REDIS_SENTINELS);
  return {
    urls,
    processes: urls.length,
    secret: process.env['AUTH_JWT_SECRET'] || keptSecret(),
    stores: named ? storeSettings(process.env) : { unknown: 'DATABASE_URL and REDIS_URL are not given' },
    kills: () => 0,
    startKilling: () => undefined,
    stopKilling: () => undefined,
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
