import { pauseMs } from './retry-policy.js';

interface Pause {
  failures: number;
  untilMs: number;
}

/** Vouchers remembered at most; one forgotten costs no more than an early try. */
const LARGEST_SIZE = 10_000;

/** The vouchers whose row was locked when their orders were to be stored: each waits with a growing pause of its own while others go on. All instants are milliseconds of one monotonic clock. */
export class VoucherPauses {
  private readonly pauses = new Map<string, Pause>();

  constructor(private readonly random: () => number = Math.random) {}

  get size(): number {
    return this.pauses.size;
  }

  /** True while orders of this voucher are not to be tried. */
  isPaused(voucherId: string, nowMs: number): boolean {
    const pause = this.pauses.get(voucherId);
    return pause !== undefined && pause.untilMs > nowMs;
  }

  /** The voucher was locked (again): its pause begins now. */
  defer(voucherId: string, nowMs: number): void {
    const failures = (this.pauses.get(voucherId)?.failures ?? 0) + 1;
    this.pauses.delete(voucherId);
    if (this.pauses.size >= LARGEST_SIZE) this.pauses.delete(this.pauses.keys().next().value ?? '');
    this.pauses.set(voucherId, { failures, untilMs: nowMs + pauseMs(failures, this.random()) });
  }

  /** An order of this voucher was decided: it is locked no longer. */
  succeed(voucherId: string): void {
    this.pauses.delete(voucherId);
  }

  /** True where each remembered voucher waits: reading left orders now would find none to try. */
  allPaused(nowMs: number): boolean {
    for (const pause of this.pauses.values()) if (pause.untilMs <= nowMs) return false;
    return this.pauses.size > 0;
  }

  /** When the first pause ends, or undefined where nobody waits. */
  nextEndMs(): number | undefined {
    let next: number | undefined;
    for (const { untilMs } of this.pauses.values()) next = Math.min(next ?? untilMs, untilMs);
    return next;
  }

  clear(): void {
    this.pauses.clear();
  }
}
