const ZONED = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?(?:Z|([+-])(\d{2}):(\d{2}))$/;

/** The latest instant accepted and printed: the end of the year 9999. */
const LATEST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/**
 * Reads an ISO 8601 time with zone (`2026-11-30T12:00:00Z`, `2026-11-30T20:00:00.5+08:00`); fractions beyond milliseconds are cut. Gives Unix
 * milliseconds, or undefined where the text has no zone, another form, or names no real day or hour (no 30 February, no hour 24, no leap second).
 */
export function parseZonedIsoTime(text: unknown): number | undefined {
  if (typeof text !== 'string' || text.length > 40) return undefined;
  const match = ZONED.exec(text);
  if (match === null) return undefined;
  const number = (index: number): number => Number(match[index] ?? 0);
  const [year, month, day, hour, minute, second] = [1, 2, 3, 4, 5, 6].map(number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const fractionMs = Number((match[7] ?? '').padEnd(3, '0').slice(0, 3));
  const zoneMinutes = (match[8] === '-' ? -1 : 1) * (number(9) * 60 + number(10));
  if (hour > 23 || minute > 59 || second > 59 || number(9) > 23 || number(10) > 59 || year < 1) return undefined;
  const local = new Date(0);
  local.setUTCFullYear(year, month - 1, day);
  if (local.getUTCMonth() !== month - 1 || local.getUTCDate() !== day) return undefined;
  local.setUTCHours(hour, minute, second, fractionMs);
  const ms = local.getTime() - zoneMinutes * 60_000;
  return ms <= LATEST_MS ? ms : undefined;
}

/** ISO 8601 in UTC with milliseconds, as every answer prints times. */
export function formatIsoTime(unixMs: number): string {
  return new Date(unixMs).toISOString();
}
