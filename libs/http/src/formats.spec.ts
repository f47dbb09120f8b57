import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ERROR_CATALOGUE, formatIsoTime, isId, isTrouble, negotiateLanguage, parseZonedIsoTime } from './index.js';

describe('a canonical id', () => {
  it('is exactly the decimal spelling of 1 to 2^63 - 1', () => {
    fc.assert(fc.property(fc.bigInt({ min: 1n, max: 2n ** 63n - 1n }), (id) => isId(String(id))));
    fc.assert(fc.property(fc.bigInt({ min: 2n ** 63n, max: 2n ** 80n }), (id) => !isId(String(id))));
    fc.assert(fc.property(fc.bigInt({ max: 0n }), (id) => !isId(String(id))));
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary' }),
        (text) => isId(text) === (/^[1-9]\d{0,18}$/.test(text) && BigInt(text) < 2n ** 63n),
      ),
    );
    for (const value of [1, 1n, null, undefined, ['1'], { length: 1 }]) expect(isId(value)).toBe(false);
  });
});

describe('a time with zone', () => {
  it('comes back as the same instant', () => {
    const zones = fc.record({ sign: fc.constantFrom(1, -1), minutes: fc.integer({ min: 0, max: 14 * 60 }) });
    fc.assert(
      fc.property(fc.integer({ min: Date.UTC(1971), max: Date.UTC(9998) }), zones, (instant, { sign, minutes }) => {
        const local = formatIsoTime(instant + sign * minutes * 60_000).slice(0, -1);
        const two = (number: number) => String(number).padStart(2, '0');
        const zone = `${sign === 1 ? '+' : '-'}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
        expect(parseZonedIsoTime(local + zone)).toBe(instant);
        expect(parseZonedIsoTime(formatIsoTime(instant))).toBe(instant);
      }),
    );
  });
  it.each([
    ['2026-11-30T12:00Z', Date.UTC(2026, 10, 30, 12)],
    ['2024-02-29T00:00:00.5Z', Date.UTC(2024, 1, 29, 0, 0, 0, 500)],
    ['2026-11-30T12:00:00.123456789+00:00', Date.UTC(2026, 10, 30, 12, 0, 0, 123)],
  ])('%s is read', (text, instant) => expect(parseZonedIsoTime(text)).toBe(instant));
  it.each([
    '2026-11-30T12:00:00',
    '2026-11-30',
    '2026-02-29T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-11-30T24:00:00Z',
    '2026-11-30T12:60:00Z',
    '2026-11-30T12:00:60Z',
    '2026-11-30 12:00:00Z',
    '2026-11-30T12:00:00+24:00',
    '0000-01-01T00:00:00Z',
    '+012026-01-01T00:00:00Z',
    '',
    'now',
    1764504000000,
    null,
  ])('%j is refused', (text) => expect(parseZonedIsoTime(text)).toBeUndefined());
});

describe('the language of an answer', () => {
  it.each([
    [undefined, 'en'],
    ['', 'en'],
    ['zh', 'zh'],
    ['zh-CN,zh;q=0.9', 'zh'],
    ['en;q=0.5, zh;q=0.6', 'zh'],
    ['zh;q=0, en', 'en'],
    ['zh;q=0', 'en'],
    ['fr, de', 'en'],
    ['*', 'en'],
    ['fr, zh-TW;q=0.1', 'zh'],
    ['EN, ZH', 'en'],
    ['zh;q=2', 'en'],
    [`zh,${'x'.repeat(300)}`, 'en'],
  ])('for %j is %s', (header, language) => expect(negotiateLanguage(header)).toBe(language));
});

describe('trouble', () => {
  it('is found behind causes, also in a cycle of them', () => {
    const cycle = new Error('a');
    cycle.cause = new Error('b', { cause: cycle });
    expect(isTrouble(cycle)).toBe(false);
    expect(isTrouble(new Error('a', { cause: Object.assign(new Error(), { code: 'REDIS_UNAVAILABLE' }) }))).toBe(true);
    expect(isTrouble(Object.assign(new Error(), { driverError: { code: '40P01' } }))).toBe(true);
    for (const defect of [undefined, null, 'text', new Error('x'), { code: '23505' }, { code: 'ERR_X' }])
      expect(isTrouble(defect)).toBe(false);
  });
});

it('every error of the catalogue speaks both languages and tells cause and remedy', () => {
  for (const [code, entry] of Object.entries(ERROR_CATALOGUE)) {
    expect(entry.status, code).toBeGreaterThanOrEqual(400);
    for (const text of [entry.title.zh, entry.detail.zh]) expect(text, code).toMatch(/\p{Script=Han}/u);
    for (const text of [entry.title.en, entry.detail.en, entry.cause, entry.remedy])
      expect(text, code).toMatch(/^[A-Z“]/);
    if (entry.status === 503 || entry.status === 429) expect(entry.retryAfterSeconds, code).toBeGreaterThan(0);
  }
});
