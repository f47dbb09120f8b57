/** Where the next batch is to come from. */
export type ReadSource =
  /** Entries that this consumer was given before and has not acknowledged, after the given id. */
  | {
      readonly kind: 'OWN_PENDING';
      readonly afterId: string;
      /** After a start or a failure; else: another look at orders that were left. */
      readonly first: boolean;
    }
  /** Entries of consumers that have been silent for too long, from the cursor on. */
  | { readonly kind: 'CLAIM'; readonly cursor: string }
  /** Entries that nobody was given yet; 0: do not wait for them. */
  | { readonly kind: 'NEW'; readonly blockMs: number };

export interface ReadLimits {
  /** The longest wait for new entries. */
  readonly blockMs: number;
  /** How soon after the end of a sweep over the group's pending list the next one begins. */
  readonly sweepEveryMs: number;
}

const BEGINNING = '0-0';

/**
 * How often the group's pending list is swept: often enough that "min-idle plus one sweep" is little more than min-idle, seldom enough that an idle
 * consumer is idle.
 */
export function sweepEveryMs(claimMinIdleMs: number): number {
  return Math.max(100, Math.min(5_000, Math.floor(claimMinIdleMs / 4)));
}

/**
 * Decides what to read next. After a start or a failure: the own pending list, from its beginning to its end, before anything else. Later the
 * recovery of left work (own orders of a locked voucher, claims from the dead) and new entries take turns, so that neither waits for the other; where
 * there is nothing to recover the wait for new entries ends when the next recovery is due. All instants are milliseconds of one monotonic clock.
 */
export class ReadPlan {
  private ownPending: { afterId: string; first: boolean } | undefined = { afterId: BEGINNING, first: true };
  private recheckAtMs: number | undefined;
  private claimCursor = BEGINNING;
  private sweeping = false;
  private sweepAtMs = Number.NEGATIVE_INFINITY;
  private newIsNext = false;

  constructor(private readonly limits: ReadLimits) {}

  /** Read all own pending entries before anything else: some may have been handed out in a reply that was lost. */
  restart(): void {
    this.ownPending = { afterId: BEGINNING, first: true };
    this.recheckAtMs = undefined;
  }

  /** Some own entries were left pending: look at them again at that instant, or earlier if asked for earlier. */
  recheckOwnPending(atMs: number): void {
    this.recheckAtMs = Math.min(this.recheckAtMs ?? atMs, atMs);
  }

  /** Begin a sweep at once. */
  sweepNow(): void {
    this.sweepAtMs = Number.NEGATIVE_INFINITY;
  }

  /** The next read at the instant `nowMs`. */
  next(nowMs: number): ReadSource {
    if (this.ownPending === undefined && this.recheckAtMs !== undefined && this.recheckAtMs <= nowMs) {
      this.ownPending = { afterId: BEGINNING, first: false };
      this.recheckAtMs = undefined;
    }
    if (!this.sweeping && this.sweepAtMs <= nowMs) this.sweeping = true;
    if (this.ownPending?.first === true) return { kind: 'OWN_PENDING', ...this.ownPending };
    const recovering = this.ownPending !== undefined || this.sweeping;
    if (recovering && !this.newIsNext) {
      this.newIsNext = true;
      if (this.ownPending !== undefined) return { kind: 'OWN_PENDING', ...this.ownPending };
      return { kind: 'CLAIM', cursor: this.claimCursor };
    }
    this.newIsNext = false;
    return { kind: 'NEW', blockMs: recovering ? 0 : this.waitMs(nowMs) };
  }

  /** The own pending list was read up to `lastId`; undefined: nothing stood after it. */
  ownPendingRead(lastId: string | undefined): void {
    if (lastId === undefined) this.ownPending = undefined;
    else if (this.ownPending !== undefined) this.ownPending.afterId = lastId;
  }

  /** The rest of the left orders cannot be tried now: look again at that instant. A list that is read after a start or a failure is read on. */
  postponeOwnPending(atMs: number): void {
    if (this.ownPending?.first !== false) return;
    this.ownPending = undefined;
    this.recheckOwnPending(atMs);
  }

  /** A claim answered with this cursor; `0-0` ends the sweep. */
  claimed(cursor: string, nowMs: number): void {
    this.claimCursor = cursor;
    if (cursor !== BEGINNING) return;
    this.sweeping = false;
    this.sweepAtMs = nowMs + this.limits.sweepEveryMs;
  }

  /** True while a sweep is under way. */
  get isSweeping(): boolean {
    return this.sweeping;
  }

  /** True while the own pending list is being read. */
  get isReadingOwnPending(): boolean {
    return this.ownPending !== undefined;
  }

  private waitMs(nowMs: number): number {
    const dueMs = Math.min(this.sweepAtMs, this.recheckAtMs ?? Number.POSITIVE_INFINITY);
    return Math.max(0, Math.min(this.limits.blockMs, Math.ceil(dueMs - nowMs)));
  }
}
