// Builds that reach this file by import alone must find the ambient types too; there is no module to import.
// eslint-disable-next-line @typescript-eslint/triple-slash-reference
/// <reference path="./redlock.d.ts" />
import { Inject, Injectable, Logger } from '@nestjs/common';
import Redlock, { type Lock } from 'redlock';
import { SETTINGS, type Settings } from '#config';
import { RedisConnections } from './redis-connections.js';

const LOG_PAUSE_MS = 10_000;

/** A lock in hand. It only saves work: it may be lost at any moment, so correctness never rests on it. */
export interface HeldLock {
  /** Unix milliseconds after which the lock may be someone else's. */
  readonly expiresAtMs: number;
  /** Keeps it for `ttlMs` from now on, without a gap. False where it is lost, or Redis cannot say. Never throws for Redis trouble. */
  extend(ttlMs: number): Promise<boolean>;
  /** Gives it back. Never throws: a lock that expired or whose server is away runs out by itself. */
  release(): Promise<void>;
}

/** Locks between processes (redlock), in their own name space `lock:<what>:<id>`. */
@Injectable()
export class LockService {
  private readonly logger = new Logger(LockService.name);
  private readonly redlock: Redlock;
  private loggedAtMs = -LOG_PAUSE_MS;

  constructor(
    connections: RedisConnections,
    @Inject(SETTINGS) private readonly settings: Settings,
  ) {
    this.redlock = new Redlock([connections.command], { retryCount: 0, automaticExtensionThreshold: 0 });
  }

  /**
   * Tries once. `resource` is `<what>:<id>`, for example `order:42`; `ttlMs` is how long it is held at most. Undefined where someone
   * else holds it or Redis cannot say: both mean "not now". Never throws for Redis trouble.
   */
  async tryAcquire(resource: string, ttlMs: number): Promise<HeldLock | undefined> {
    if (!/^[a-z-]+:[^\s]+$/.test(resource)) throw new TypeError(`a lock is named <what>:<id>, not ${resource}`);
    if (!Number.isSafeInteger(ttlMs) || ttlMs <= 0) throw new TypeError('ttlMs must be a whole number above 0');
    try {
      const lock = await this.redlock.acquire([`${this.settings.redis.keyPrefix}lock:${resource}`], ttlMs);
      return this.held(lock);
    } catch (error) {
      if (!(await everyVoteSaysLocked(error))) this.warn('cannot be taken', error);
      return undefined;
    }
  }

  private held(first: Lock): HeldLock {
    let lock = first;
    return {
      get expiresAtMs() {
        return lock.expiration;
      },
      extend: async (ttlMs) => {
        const longer = await this.extended(lock, ttlMs);
        lock = longer ?? lock;
        return longer !== undefined;
      },
      release: () => this.release(lock),
    };
  }

  private async extended(lock: Lock, ttlMs: number): Promise<Lock | undefined> {
    try {
      return await lock.extend(ttlMs);
    } catch (error) {
      if (!(await everyVoteSaysLocked(error))) this.warn('cannot be kept for longer', error);
      return undefined;
    }
  }

  private async release(lock: Lock): Promise<void> {
    try {
      await lock.release();
    } catch (error) {
      // Expired, or taken over since: the other holder's lock is left alone by the release script.
      if (!(await everyVoteSaysLocked(error))) this.warn('cannot be released and will run out', error);
    }
  }

  private warn(what: string, error: unknown): void {
    const nowMs = performance.now();
    if (nowMs - this.loggedAtMs < LOG_PAUSE_MS) return;
    this.loggedAtMs = nowMs;
    this.logger.warn(`A lock ${what}: ${error instanceof Error ? error.message : 'error'}`);
  }
}

/** redlock reports "held by someone" and "server away" by one error; its votes tell them apart. */
async function everyVoteSaysLocked(error: unknown): Promise<boolean> {
  const attempts = (error as { attempts?: readonly Promise<{ votesAgainst: Map<unknown, Error> }>[] }).attempts;
  if (attempts === undefined) return false;
  const stats = await Promise.all(attempts);
  return stats.every(({ votesAgainst }) =>
    [...votesAgainst.values()].every((vote) => vote.constructor.name === 'ResourceLockedError'),
  );
}
