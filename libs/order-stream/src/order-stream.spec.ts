import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeEntry, encodeOrder, rawEntry } from './order-codec.js';
import { isCanonicalId, MAX_ID } from './canonical-id.js';
import { compareEntryIds, entryTimeMs, isEntryId, nextEntryId } from './entry-id.js';

describe('canonical ids', () => {
  it('are exactly the decimal spellings of 1..2^63-1', () => {
    fc.assert(fc.property(fc.bigInt({ min: 1n, max: BigInt(MAX_ID) }), (id) => isCanonicalId(String(id))));
    fc.assert(
      fc.property(fc.bigInt({ min: BigInt(MAX_ID) + 1n, max: 10n ** 40n }), (id) => !isCanonicalId(String(id))),
    );
    expect([isCanonicalId('1'), isCanonicalId(MAX_ID), isCanonicalId('9223372036854775808')]).toEqual([
      true,
      true,
      false,
    ]);
  });

  it.each([
    '',
    ' ',
    '0',
    '-1',
    '+7',
    '07',
    ' 7',
    '7 ',
    '7.0',
    '1.5',
    '1e3',
    '0x10',
    '1,000',
    '٣',
    '７',
    'NaN',
    '1abc',
    '7\n',
    '9'.repeat(1_000_000),
  ])('are not "%.20s"', (text) => expect(isCanonicalId(text)).toBe(false));

  it.each([null, undefined, 7, 7n, {}, []])('are not %s', (value) => expect(isCanonicalId(value)).toBe(false));
});

describe('an entry', () => {
  const id = fc.bigInt({ min: 1n, max: BigInt(MAX_ID) }).map(String);

  it('decodes to the order that was encoded, whatever else it carries', () => {
    const extra = fc.dictionary(
      fc.string().filter((name) => !['userId', 'voucherId', 'id'].includes(name)),
      fc.string(),
    );
    fc.assert(
      fc.property(fc.record({ orderId: id, userId: id, voucherId: id }), extra, (order, more) => {
        const flat = [...Object.entries(more).flat(), ...encodeOrder(order)];
        expect(decodeEntry(rawEntry('1-1', flat))).toEqual({ kind: 'ORDER', entryId: '1-1', order });
      }),
    );
  });

  it.each([
    ['no user', { voucherId: '17', id: '5' }, 'field "userId" is missing'],
    ['a user that is a word', { userId: 'abc', voucherId: '17', id: '5' }, 'field "userId" is no id: "abc"'],
    ['an empty voucher', { userId: '1', voucherId: '', id: '5' }, 'field "voucherId" is no id: ""'],
    ['the id in another case', { userId: '1', voucherId: '17', Id: '5' }, 'field "id" is missing'],
    ['an id of 40 digits', { userId: '1', voucherId: '17', id: '1'.repeat(40) }, 'field "id" is no id'],
    ['an id with zeros before it', { userId: '1', voucherId: '17', id: '05' }, 'field "id" is no id: "05"'],
    ['nothing', {}, 'field "userId" is missing'],
  ])('with %s is malformed, with the cause', (_what, fields, cause) => {
    const decoded = decodeEntry({ entryId: '1-1', fields });
    expect(decoded).toMatchObject({ kind: 'MALFORMED', entryId: '1-1', fields });
    expect(decoded.kind === 'MALFORMED' && decoded.cause).toContain(cause);
  });

  it('does not take inherited names for fields, and keeps causes short', () => {
    const fields = rawEntry('1-1', ['__proto__', '7', 'userId', 'x'.repeat(1_000_000)]).fields ?? {};
    const decoded = decodeEntry({ entryId: '1-1', fields });
    expect(decoded.kind === 'MALFORMED' && decoded.cause.length).toBeLessThan(120);
    expect(Object.keys(fields)).toEqual(['__proto__', 'userId']);
  });

  it('that lost its fields has vanished', () => {
    expect(decodeEntry(rawEntry('1-1', null))).toEqual({ kind: 'VANISHED', entryId: '1-1' });
  });

  it('is never made of an id that is not canonical', () => {
    expect(() => encodeOrder({ orderId: '05', userId: '1', voucherId: '1' })).toThrow(TypeError);
  });
});

describe('entry ids', () => {
  const part = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });

  it('are ordered as their numbers are, and have a next one', () => {
    fc.assert(
      fc.property(part, part, part, part, (ms, seq, otherMs, otherSeq) => {
        const sign = ms === otherMs ? Number(seq > otherSeq) - Number(seq < otherSeq) : ms < otherMs ? -1 : 1;
        expect(Math.sign(compareEntryIds(`${ms}-${seq}`, `${otherMs}-${otherSeq}`))).toBe(sign);
      }),
    );
    expect(nextEntryId('5-7')).toBe('5-8');
    expect(nextEntryId('5-18446744073709551615')).toBe('6-0');
    expect(entryTimeMs('1700000000123-4')).toBe(1_700_000_000_123);
  });

  it('is the id of an entry exactly where both its numbers fit in 64 bits', () => {
    const near = fc.bigInt({ min: 2n ** 64n - 3n, max: 2n ** 64n + 3n });
    const number = fc.oneof(near, fc.bigInt({ min: 0n, max: 2n ** 70n }));
    fc.assert(
      fc.property(number, number, (ms, sequence) => {
        expect(isEntryId(`${ms}-${sequence}`)).toBe(ms < 2n ** 64n && sequence < 2n ** 64n);
      }),
    );
  });
  it.each(['', '5', '5-', '-5', 'a-b', '5-07', '05-7', '5-7-9', '18446744073709551616-0', '$', '>'])(
    'are not "%s"',
    (text) => {
      expect(isEntryId(text)).toBe(false);
      expect(() => entryTimeMs(text)).toThrow(TypeError);
    },
  );
});
