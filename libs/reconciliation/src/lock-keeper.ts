import { Injectable } from '@nestjs/common';
import { LockService, type HeldLock } from '#redis';

/** A process that dies is overtaken after this time. */
const LOCK_TTL_MS = 10_000;
const RENEW_AFTER_MS = LOCK_TTL_MS / 3;

/** Holds a lock for as long as a piece of work takes. The lock only saves work: losing it stops nothing. */
@Injectable()
export class LockKeeper {
  constructor(private readonly locks: LockService) {}

  /** Runs the work under the lock `<what>:<id>`. Answers undefined, without running it, where someone else holds the lock, or Redis cannot say. */
  async ifFree<T>(resource: string, work: () => Promise<T>): Promise<T | undefined> {
    const lock = await this.locks.tryAcquire(resource, LOCK_TTL_MS);
    return lock === undefined ? undefined : this.whileHeld(resource, lock, work);
  }

  /** Runs the work under the lock where it is free, and without it where it is not. */
  async orWithout<T>(resource: string, work: () => Promise<T>): Promise<T> {
    const lock = await this.locks.tryAcquire(resource, LOCK_TTL_MS);
    return lock === undefined ? work() : this.whileHeld(resource, lock, work);
  }

  private async whileHeld<T>(resource: string, first: HeldLock, work: () => Promise<T>): Promise<T> {
    let lock: HeldLock | undefined = first;
    let renewal: Promise<void> = Promise.resolve();
    // Extended without a gap, else another process that waits would overtake the work again and again. Where the lock was lost (its server
    // was) it is taken anew; whoever came between takes the work over, and this one finds out by its token.
    const renew = async () => {
      if (lock !== undefined && (await lock.extend(LOCK_TTL_MS))) return;
      lock = await this.locks.tryAcquire(resource, LOCK_TTL_MS);
    };
    const timer = setInterval(() => {
      renewal = renewal.then(renew);
    }, RENEW_AFTER_MS);
    try {
      return await work();
    } finally {
      clearInterval(timer);
      await renewal;
      await lock?.release();
    }
  }
}
