/** Lets `perSecond` through on average, and up to `atOnce` together. Monotonic time. */
export class RateLimit {
  private left: number;
  private filledAtMs: number;

  constructor(
    private readonly perSecond: number,
    private readonly atOnce: number,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.left = atOnce;
    this.filledAtMs = now();
  }

  /** Whether one more may go now; if so, it counts. */
  take(): boolean {
    const nowMs = this.now();
    this.left = Math.min(this.atOnce, this.left + ((nowMs - this.filledAtMs) * this.perSecond) / 1_000);
    this.filledAtMs = nowMs;
    if (this.left < 1) return false;
    this.left -= 1;
    return true;
  }
}
