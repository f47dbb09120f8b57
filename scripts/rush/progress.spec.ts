import { describe, expect, it } from 'vitest';
import { ProgressDisplay, progressLine, thousands } from './progress.js';

describe('progressLine', () => {
  it('shows the counts and what each gained per second', () => {
    const before = { atMs: 1_000, sent: 2_000, accepted: 100, stored: 40 };
    const now = { atMs: 1_500, sent: 5_000, accepted: 500, stored: 240 };
    expect(progressLine(now, before, 20_000)).toBe(
      '█████░░░░░░░░░░░░░░░  25 %  sent 5,000 (6,000/s)  accepted 500 (800/s)  stored 240 (400/s)',
    );
  });

  it('says so where the stored orders cannot be counted, and never shows more than all', () => {
    const line = progressLine({ atMs: 0, sent: 12, accepted: 1, stored: undefined }, undefined, 10);
    expect(line).toContain('100 %');
    expect(line).toContain('stored ?');
  });

  it('groups digits', () => {
    expect([999, 1_000, 1_234_567].map(thousands)).toEqual(['999', '1,000', '1,234,567']);
  });
});

describe('ProgressDisplay', () => {
  const shown = (isTTY: boolean, times: readonly number[]): string => {
    let text = '';
    const display = new ProgressDisplay({ isTTY, columns: 40, write: (part: string) => (text += part) });
    for (const atMs of times) display.show(`line ${atMs}`, atMs);
    display.end();
    return text;
  };

  it('rewrites one line on a terminal and ends it', () => {
    expect(shown(true, [0, 250])).toBe('\r\u001b[2Kline 0\r\u001b[2Kline 250\n');
  });

  it('writes at most a line a second elsewhere, without control characters', () => {
    expect(shown(false, [0, 250, 500, 1_000, 1_250])).toBe('line 0\nline 1000\n');
  });
});
