import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { formatLocalTime, parseLocalTime } from './index.js';

afterEach(() => vi.unstubAllEnvs());
const inZone = (zone: string): void => void vi.stubEnv('TZ', zone);

describe('a date-time without zone', () => {
  it('is of the zone of the process', () => {
    inZone('Asia/Shanghai');
    expect(parseLocalTime('2022-01-26T10:09:17')).toBe(Date.UTC(2022, 0, 26, 2, 9, 17));
    expect(formatLocalTime(Date.UTC(2022, 0, 26, 2, 9, 17))).toBe('2022-01-26T10:09:17');
    inZone('UTC');
    expect(parseLocalTime('2022-01-26T10:09:17')).toBe(Date.UTC(2022, 0, 26, 10, 9, 17));
    expect(formatLocalTime(Date.UTC(2022, 0, 26, 10, 9, 17))).toBe('2022-01-26T10:09:17');
  });

  it('may lack seconds, and may have a fraction, which is printed only where there is one', () => {
    inZone('Asia/Shanghai');
    expect(parseLocalTime('2022-01-26T10:09')).toBe(Date.UTC(2022, 0, 26, 2, 9));
    expect(parseLocalTime('2022-01-26T10:09:17.5')).toBe(Date.UTC(2022, 0, 26, 2, 9, 17, 500));
    expect(parseLocalTime('2022-01-26T10:09:17.123456789')).toBe(Date.UTC(2022, 0, 26, 2, 9, 17, 123));
    expect(formatLocalTime(Date.UTC(2022, 0, 26, 2, 9))).toBe('2022-01-26T10:09:00');
    expect(formatLocalTime(Date.UTC(2022, 0, 26, 2, 9, 17, 50))).toBe('2022-01-26T10:09:17.050');
  });

  it('with a zone is that very instant', () => {
    inZone('Asia/Shanghai');
    expect(parseLocalTime('2022-01-26T10:09:17Z')).toBe(Date.UTC(2022, 0, 26, 10, 9, 17));
  });

  it.each([
    '2022-02-30T10:00:00',
    '2022-13-01T10:00:00',
    '2022-00-10T10:00:00',
    '2022-01-01T24:00:00',
    '2022-01-01T10:60:00',
    '2022-01-01T10:00:60',
    '0000-01-01T10:00:00',
    '2022-01-26 10:09:17',
    '2022-1-26T10:09:17',
    '2022-01-26',
    ' 2022-01-26T10:09:17',
    '2022-01-26T10:09:17\n',
    '',
    1643162957000,
    null,
    [2022, 1, 26],
  ])('is refused where it is none: %j', (text) => {
    inZone('Asia/Shanghai');
    expect(parseLocalTime(text)).toBeUndefined();
  });

  it('is refused where the clock steps over it, and is the first passing where the clock passes twice', () => {
    inZone('Europe/Berlin');
    expect(parseLocalTime('2026-03-29T02:30:00')).toBeUndefined();
    expect(parseLocalTime('2026-10-25T02:30:00')).toBe(Date.UTC(2026, 9, 25, 0, 30));
  });

  it.each(['Asia/Shanghai', 'UTC', 'America/St_Johns'])('printed and read again is the same in %s', (zone) => {
    inZone(zone);
    const instants = fc.integer({ min: Date.UTC(1995, 0, 1), max: Date.UTC(2100, 0, 1) });
    fc.assert(
      fc.property(instants, (unixMs) => {
        const read = parseLocalTime(formatLocalTime(unixMs));
        // The second passing of an hour that the clock repeats reads as its first.
        expect([unixMs, unixMs - 3_600_000]).toContain(read);
      }),
    );
  });
});
