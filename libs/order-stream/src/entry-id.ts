const ENTRY_ID = /^(0|[1-9][0-9]{0,19})-(0|[1-9][0-9]{0,19})$/;
const MAX_SEQUENCE = 18446744073709551615n;
const LONGEST_PART = String(MAX_SEQUENCE);
/** The greatest id: nothing can stand behind it. */
export const LAST_ENTRY_ID = '18446744073709551615-18446744073709551615';

/** True for the id of a stream entry: `<Unix milliseconds>-<sequence>`, canonical decimals of 64 bits. */
export function isEntryId(value: unknown): value is string {
  if (typeof value !== 'string' || !ENTRY_ID.test(value)) return false;
  const dash = value.indexOf('-');
  return fits(value.slice(0, dash)) && fits(value.slice(dash + 1));
}

/** Whether a canonical decimal is no larger than 64 bits: texts of one length stand in the order of their numbers. No bigint is made: each entry asks. */
function fits(part: string): boolean {
  return part.length < LONGEST_PART.length || part <= LONGEST_PART;
}

/** When the entry was appended, by Redis' clock: Unix milliseconds. Throws a TypeError for what is no entry id. */
export function entryTimeMs(entryId: string): number {
  return Number(assertEntryId(entryId).slice(0, entryId.indexOf('-')));
}

/** Order of two entries of one stream: negative where `a` stands before `b`, 0 where they are one, else positive. */
export function compareEntryIds(a: string, b: string): number {
  const [aMs, aSequence] = parts(assertEntryId(a));
  const [bMs, bSequence] = parts(assertEntryId(b));
  if (aMs !== bMs) return aMs < bMs ? -1 : 1;
  if (aSequence !== bSequence) return aSequence < bSequence ? -1 : 1;
  return 0;
}

/** The smallest id behind `entryId`: where the next page of a range begins. Behind LAST_ENTRY_ID there is none: look for it first. */
export function nextEntryId(entryId: string): string {
  const [ms, sequence] = parts(assertEntryId(entryId));
  return sequence === MAX_SEQUENCE ? `${ms + 1n}-0` : `${ms}-${sequence + 1n}`;
}

function parts(entryId: string): [bigint, bigint] {
  const dash = entryId.indexOf('-');
  return [BigInt(entryId.slice(0, dash)), BigInt(entryId.slice(dash + 1))];
}

function assertEntryId(value: string): string {
  if (!isEntryId(value)) throw new TypeError(`not the id of a stream entry: ${JSON.stringify(value)}`);
  return value;
}
