/** How often the same trouble is said again. */
export const SAY_AGAIN_MS = 10_000;

/**
 * Keeps an error loop from flooding the log: a new text is said at once (but no more than one line a second), a repeated one every
 * SAY_AGAIN_MS with the number of times it was held back.
 */
export class RepeatedLog {
  private lastText = '';
  private lastSaidMs = Number.NEGATIVE_INFINITY;
  private heldBack = 0;

  constructor(private readonly say: (line: string) => void) {}

  /** Says the text, or counts it as held back. */
  note(text: string, nowMs: number): void {
    const sinceMs = nowMs - this.lastSaidMs;
    if (sinceMs < 1_000 || (text === this.lastText && sinceMs < SAY_AGAIN_MS)) {
      this.heldBack += 1;
      return;
    }
    this.say(this.heldBack > 0 ? `${text} (${this.heldBack} more lines held back)` : text);
    this.lastText = text;
    this.lastSaidMs = nowMs;
    this.heldBack = 0;
  }

  /** The trouble is over: the next text is said at once, unless one was said within the last second. */
  over(): void {
    this.lastText = '';
    this.heldBack = 0;
  }
}
