import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Hs256, MAX_SIGNED_CHARS } from './hs256.js';

const sign = (secret: string, text: string): string => createHmac('sha256', secret).update(text).digest('base64url');
const text = fc.string({ unit: 'binary', maxLength: 300 });

describe('Hs256', () => {
  it('accepts what an HMAC of the platform signs, whatever the lengths of secret and text', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', minLength: 1, maxLength: 200 }),
        fc.array(text, { minLength: 1 }),
        (secret, texts) => {
          const checker = new Hs256(secret);
          for (const text of texts) expect(checker.signs(text, sign(secret, text))).toBe(true);
        },
      ),
    );
  });
  it('refuses every other signature, text and secret', () => {
    fc.assert(
      fc.property(text, text, fc.nat({ max: 41 }), (text, other, at) => {
        const checker = new Hs256('a secret');
        const signature = sign('a secret', text);
        const changed = signature.slice(0, at) + (signature[at] === 'A' ? 'B' : 'A') + signature.slice(at + 1);
        expect(checker.signs(text, changed)).toBe(false);
        expect(checker.signs(text, signature.slice(0, -1))).toBe(false);
        expect(checker.signs(text, `${signature}A`)).toBe(false);
        expect(checker.signs(text, sign('another', text))).toBe(false);
        if (other !== text) expect(checker.signs(other, signature)).toBe(false);
      }),
    );
  });
  it('is not led astray by a longer text before a shorter one', () => {
    const checker = new Hs256('s');
    expect(checker.signs('x'.repeat(MAX_SIGNED_CHARS), sign('s', 'x'.repeat(MAX_SIGNED_CHARS)))).toBe(true);
    expect(checker.signs('y', sign('s', 'y'))).toBe(true);
    expect(checker.signs('x'.repeat(MAX_SIGNED_CHARS + 1), sign('s', 'x'.repeat(MAX_SIGNED_CHARS + 1)))).toBe(false);
  });
});
