const FIRST_MS = 100;
const LONGEST_MS = 10_000;
/** A process that served this long was sound: what ended it has nothing to do with the ends before. */
const SOUND_MS = 60_000;

/** How long to wait before a process that ended without being told to is started again: a moment, then twice as long each time, up to ten seconds. */
export class ReplacementPause {
  private endsInARow = 0;

  /** How often in a row it ended early. */
  get early(): number {
    return this.endsInARow;
  }

  /** @param servedMs how long the ended process had served; 0 where it never did */
  nextMs(servedMs: number): number {
    this.endsInARow = servedMs >= SOUND_MS ? 1 : this.endsInARow + 1;
    return Math.min(FIRST_MS * 2 ** (this.endsInARow - 1), LONGEST_MS);
  }
}
