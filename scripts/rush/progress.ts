/** The state of a rush at one moment. `stored` is undefined where it cannot be counted. */
export interface ProgressSample {
  readonly atMs: number;
  readonly sent: number;
  readonly accepted: number;
  readonly stored: number | undefined;
}

const BAR_WIDTH = 20;

/** One line: how far it is, and what each count gained per second since the sample before. */
export function progressLine(now: ProgressSample, before: ProgressSample | undefined, buyers: number): string {
  const seconds = before === undefined ? 0 : (now.atMs - before.atMs) / 1_000;
  const count = (name: string, value: number | undefined, earlier: number | undefined): string => {
    if (value === undefined) return `${name} ?`;
    const rate = seconds > 0 ? Math.max(0, value - (earlier ?? 0)) / seconds : 0;
    return `${name} ${thousands(value)} (${thousands(Math.round(rate))}/s)`;
  };
  const share = Math.min(1, buyers === 0 ? 1 : now.sent / buyers);
  const full = Math.round(share * BAR_WIDTH);
  const bar = `${'█'.repeat(full)}${'░'.repeat(BAR_WIDTH - full)}`;
  const parts = [
    count('sent', now.sent, before?.sent),
    count('accepted', now.accepted, before?.accepted),
    count('stored', now.stored, before?.stored),
  ];
  return `${bar} ${String(Math.floor(share * 100)).padStart(3)} %  ${parts.join('  ')}`;
}

/** 1234567 as 1,234,567. */
export function thousands(value: number): string {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ',');
}

/**
 * Shows progress lines: on a terminal in place, elsewhere a line from time to time. `out` is where to.
 */
export class ProgressDisplay {
  private lastShownMs = -Infinity;
  private open = false;

  constructor(
    private readonly out: {
      readonly isTTY?: boolean | undefined;
      readonly columns?: number;
      write(text: string): unknown;
    },
    private readonly everyMs = out.isTTY === true ? 0 : 1_000,
  ) {}

  show(line: string, atMs: number): void {
    if (atMs - this.lastShownMs < this.everyMs) return;
    this.lastShownMs = atMs;
    if (this.out.isTTY !== true) {
      this.out.write(`${line}\n`);
      return;
    }
    this.open = true;
    this.out.write(`\r\u001b[2K${line.slice(0, Math.max(20, (this.out.columns ?? 120) - 1))}`);
  }

  /** Ends the line on a terminal, so that what follows begins on its own. */
  end(): void {
    if (this.open) this.out.write('\n');
    this.open = false;
  }
}
