import { Logger } from '@nestjs/common';
import { orderIdLeases } from '../metrics.js';
import { OrderIdFormat, SEQUENCE_LIMIT } from './order-id.js';

/** Sequences leased in one call: at 50,000 purchases a second one call each second, and hours of ids while Redis rests. */
export const LEASE_SIZE = 50_000;
/** Below this many left the next block is leased. */
const REFILL_BELOW = LEASE_SIZE / 2;
/** This long before midnight the first block of the next day is leased. */
const NEXT_DAY_AHEAD_SECONDS = 60;
const SECONDS_PER_DAY = 86_400;
/** A failed lease is not tried again before this time, unless a purchase waits for it. */
const RETRY_PAUSE_MS = 200;
const REPORT_INTERVAL_MS = 5_000;

/** Leases `size` consecutive sequences of the counter of one UTC day (`yyyy:MM:dd`); resolves to the first of them. Rejects while Redis is away. */
export type LeaseSequences = (day: string, size: number) => Promise<number>;

interface Lease {
  readonly day: number;
  next: number;
  left: number;
}

/**
 * Makes order ids without a round trip, from blocks of the day's counter that are leased ahead of need.
 *
 * Promises: no id twice, across instances, restarts and clock steps: a sequence belongs to one lease, a lease to one UTC day, and ids of
 * a day take sequences of that day only. While Redis is away it goes on with what it has leased, then says undefined.
 */
export class RedisIdWorker {
  private readonly logger = new Logger(RedisIdWorker.name);
  private readonly format = new OrderIdFormat();
  /** At most two days: today, and tomorrow shortly before midnight (or yesterday after a clock step). */
  private leases: Lease[] = [];
  private readonly refills = new Map<number, Promise<void>>();
  /** Raised by `drop`: a lease that was asked for before is not taken. */
  private generation = 0;
  private pausedUntilMs = 0;
  private reportedAtMs = 0;

  constructor(
    private readonly lease: LeaseSequences,
    private readonly nowMs: () => number = () => Date.now(),
  ) {}

  /** The next id, or undefined where no leased sequence is at hand: `refill` and ask again. */
  nextId(): string | undefined {
    const unixSeconds = Math.floor(this.nowMs() / 1_000);
    const day = Math.floor(unixSeconds / SECONDS_PER_DAY);
    const lease = this.leaseOf(day);
    if (lease === undefined) return undefined;
    const id = this.format.format(unixSeconds, lease.next);
    lease.next = (lease.next + 1) % SEQUENCE_LIMIT;
    lease.left -= 1;
    if (lease.left < REFILL_BELOW) this.refillAhead(day);
    if (unixSeconds % SECONDS_PER_DAY >= SECONDS_PER_DAY - NEXT_DAY_AHEAD_SECONDS) this.refillAhead(day + 1);
    return id;
  }

  /** Resolves when a block for today is at hand or could not be had. Never rejects. Calls at the same time share one lease. */
  async refill(): Promise<void> {
    const day = Math.floor(this.nowMs() / 1_000 / SECONDS_PER_DAY);
    if (this.leaseOf(day) === undefined) await this.refillDay(day);
  }

  /** Forgets every lease: the counters may have gone back (Redis lost data). Blocks already asked for are not taken either. */
  drop(): void {
    this.generation += 1;
    this.leases = [];
    this.refills.clear();
  }

  private leaseOf(day: number): Lease | undefined {
    const current = this.leases[0];
    if (current !== undefined && current.day === day && current.left > 0) return current;
    this.leases = this.leases.filter((lease) => lease.left > 0 && Math.abs(lease.day - day) <= 1);
    const index = this.leases.findIndex((lease) => lease.day === day);
    if (index < 0) return undefined;
    const [found] = this.leases.splice(index, 1);
    this.leases.unshift(found!);
    return found;
  }

  private refillAhead(day: number): void {
    const left = this.leases.reduce((sum, lease) => (lease.day === day ? sum + lease.left : sum), 0);
    if (left < REFILL_BELOW && this.nowMs() >= this.pausedUntilMs) void this.refillDay(day);
  }

  private refillDay(day: number): Promise<void> {
    const running = this.refills.get(day);
    if (running !== undefined) return running;
    const refill = this.leaseDay(day, this.generation).finally(() => {
      if (this.refills.get(day) === refill) this.refills.delete(day);
    });
    this.refills.set(day, refill);
    return refill;
  }

  private async leaseDay(day: number, generation: number): Promise<void> {
    try {
      const first = await this.lease(dayName(day), LEASE_SIZE);
      if (!Number.isSafeInteger(first) || first < 0) throw new Error(`a lease begins at ${first}`);
      if (generation !== this.generation) return;
      this.leases.push({ day, next: first % SEQUENCE_LIMIT, left: LEASE_SIZE });
      orderIdLeases.inc({ result: 'granted' });
    } catch (error) {
      orderIdLeases.inc({ result: 'refused' });
      this.pausedUntilMs = this.nowMs() + RETRY_PAUSE_MS;
      this.report(error);
    }
  }

  private report(error: unknown): void {
    const now = this.nowMs();
    if (Math.abs(now - this.reportedAtMs) < REPORT_INTERVAL_MS) return;
    this.reportedAtMs = now;
    this.logger.warn(`no order numbers could be leased: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** `yyyy:MM:dd` of a UTC day, counted from 1970-01-01. */
function dayName(day: number): string {
  return new Date(day * SECONDS_PER_DAY * 1_000).toISOString().slice(0, 10).replaceAll('-', ':');
}
