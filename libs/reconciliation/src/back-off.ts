const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
/** Where a store was away: it may be back any moment, and buyers wait. */
const LONGEST_PAUSE_FOR_A_STORE_MS = 2_000;
/** The same trouble is said again after this time. */
const SAY_AGAIN_MS = 30_000;

/** Remembers the failures of one piece of work: when it may be tried again, and whether its trouble is worth another line in the log. */
export class BackOff {
  private failures = 0;
  private notBeforeMs = 0;
  private lastMessage = '';
  private lastSaidMs = Number.NEGATIVE_INFINITY;

  /** True where the pause after the last failure is over. */
  isDue(nowMs: number): boolean {
    return nowMs >= this.notBeforeMs;
  }

  /**
   * Notes a failure: the pause doubles from 1 s up to 30 s, or up to 2 s where only a store was away (`passing`). Answers true where the trouble is
   * new, or was last said 30 s ago.
   */
  failed(message: string, nowMs: number, passing = false): boolean {
    this.failures += 1;
    const longestMs = passing ? LONGEST_PAUSE_FOR_A_STORE_MS : LONGEST_PAUSE_MS;
    this.notBeforeMs = nowMs + Math.min(longestMs, FIRST_PAUSE_MS * 2 ** (this.failures - 1));
    const say = message !== this.lastMessage || nowMs - this.lastSaidMs >= SAY_AGAIN_MS;
    if (say) {
      this.lastMessage = message;
      this.lastSaidMs = nowMs;
    }
    return say;
  }

  /** The work went well, or what it waited for has come: no pause any more. */
  reset(): void {
    this.failures = 0;
    this.notBeforeMs = 0;
    this.lastMessage = '';
    this.lastSaidMs = Number.NEGATIVE_INFINITY;
  }
}
