import { parseZonedIsoTime } from '#http';

const LOCAL = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?$/;
const LATEST_YEAR = 9999;

type Parts = readonly [year: number, month: number, day: number, hour: number, minute: number, second: number];

/**
 * Reads a date-time without zone (`2022-01-26T10:09:17`, seconds and fraction optional) in the zone of this process (TZ), as hmdp does; fractions
 * beyond milliseconds are cut. A time that the clock passes twice is its first passing. With a zone it is that very instant. Gives Unix
 * milliseconds, or undefined where the text has another form or names no time of that zone's calendar.
 */
export function parseLocalTime(text: unknown): number | undefined {
  if (typeof text !== 'string' || text.length > 40) return undefined;
  const match = LOCAL.exec(text);
  if (match === null) return parseZonedIsoTime(text);
  const parts = [1, 2, 3, 4, 5, 6].map((index) => Number(match[index] ?? 0)) as unknown as Parts;
  const [year, month, day, hour, minute, second] = parts;
  const fractionMs = Number((match[7] ?? '').padEnd(3, '0').slice(0, 3));
  const date = new Date(0);
  date.setFullYear(year, month - 1, day);
  date.setHours(hour, minute, second, fractionMs);
  const read = partsOf(date);
  return year >= 1 && parts.every((part, index) => part === read[index]) ? date.getTime() : undefined;
}

/** The instant as a date-time without zone in the zone of this process; a fraction is printed only where there is one. */
export function formatLocalTime(unixMs: number): string {
  const date = new Date(unixMs);
  const [year, month, day, hour, minute, second] = partsOf(date);
  if (year > LATEST_YEAR || Number.isNaN(year)) throw new RangeError(`no date-time: ${unixMs}`);
  const two = (value: number): string => String(value).padStart(2, '0');
  const fractionMs = date.getMilliseconds();
  const fraction = fractionMs === 0 ? '' : `.${String(fractionMs).padStart(3, '0')}`;
  return `${String(year).padStart(4, '0')}-${two(month)}-${two(day)}T${two(hour)}:${two(minute)}:${two(second)}${fraction}`;
}

function partsOf(date: Date): Parts {
  return [
    date.getFullYear(),
    date.getMonth() + 1,
    date.getDate(),
    date.getHours(),
    date.getMinutes(),
    date.getSeconds(),
  ];
}
