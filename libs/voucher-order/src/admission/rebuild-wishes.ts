import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { EpochRegister, type RebuildReason } from '#sale-register';

/** The same wish is not passed on again before this time: a crowd that meets a closed sale wishes the same thing thousands of times. */
const REPEAT_AFTER_MS = 200;
/** A sale that is closed for this long may have been left behind by a rebuild that died. */
const ABANDONED_AFTER_MS = 5_000;
const REMEMBERED_WISHES = 1_000;
const CLOCK = { now: () => performance.now() };

/** Passes on wishes for a rebuild, each at a bounded rate. */
@Injectable()
export class RebuildWishes {
  private readonly recent = new LRUCache<string, true>({ max: REMEMBERED_WISHES, ttl: REPEAT_AFTER_MS, perf: CLOCK });
  /** Since when a voucher is heard to be closed (monotonic milliseconds). */
  private readonly closedSince = new LRUCache<string, number>({
    max: REMEMBERED_WISHES,
    ttl: 2 * ABANDONED_AFTER_MS,
    perf: CLOCK,
  });

  constructor(private readonly epochs: EpochRegister) {}

  /**
   * The voucher's purchases are refused because its partition, or its sale alone, is being reconciled. Asks for what the partition's state
   * demands; for the voucher itself only when that lasts, else each rebuild of one sale would call for the next.
   */
  closed(partition: number, voucherId: string): void {
    this.pass(partition, undefined, 'EPOCH');
    const nowMs = performance.now();
    const sinceMs = this.closedSince.get(voucherId);
    if (sinceMs === undefined) this.closedSince.set(voucherId, nowMs);
    else if (nowMs - sinceMs >= ABANDONED_AFTER_MS) this.pass(partition, voucherId, 'EPOCH');
  }

  /** Asks for the rebuild of one voucher. */
  wish(partition: number, voucherId: string, reason: Exclude<RebuildReason, 'EPOCH'>): void {
    this.pass(partition, voucherId, reason);
  }

  private pass(partition: number, voucherId: string | undefined, reason: RebuildReason): void {
    const name = `${partition}:${voucherId ?? ''}:${reason}`;
    if (this.recent.has(name)) return;
    this.recent.set(name, true);
    this.epochs.requestRebuild(partition, voucherId, reason);
  }
}
