/** The greatest id: the greatest signed 64-bit number, which PostgreSQL's bigint still holds. */
export const MAX_ID = '9223372036854775807';

const CANONICAL = /^[1-9][0-9]{0,18}$/;

/** True for a decimal string without sign, blanks or leading zeros, 1..9223372036854775807. Every identity has exactly this one spelling. */
export function isCanonicalId(value: unknown): value is string {
  // Strings of equal length compare as their numbers do: no conversion, so nothing is rounded.
  return typeof value === 'string' && CANONICAL.test(value) && (value.length < MAX_ID.length || value <= MAX_ID);
}
