import { createHash, hash } from 'node:crypto';

const BLOCK_BYTES = 64;
const DIGEST_BYTES = 32;
const SIGNATURE_CHARS = 43;
/** Most bytes of one UTF-16 unit in UTF-8. */
const UNIT_BYTES = 3;
const INNER_PAD = 0x36;
const OUTER_PAD = 0x5c;
/** Longer texts are not looked at here. */
export const MAX_SIGNED_CHARS = 4096;

/**
 * HMAC-SHA-256 over short texts with one secret. The two pads of the secret are made once, and each check is two one-shot hashes: half the price of
 * an Hmac object, whose set-up takes longer than the hashing. Digests come as strings, which cost half of a Buffer. Not re-entrant, and needs not be:
 * it is synchronous. RFC 2104.
 */
export class Hs256 {
  private readonly inner = Buffer.alloc(BLOCK_BYTES + MAX_SIGNED_CHARS * UNIT_BYTES);
  private readonly outer = Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES);

  constructor(secret: string) {
    const bytes = Buffer.from(secret);
    const key = bytes.length > BLOCK_BYTES ? createHash('sha256').update(bytes).digest() : bytes;
    for (let at = 0; at < BLOCK_BYTES; at += 1) {
      const byte = key[at] ?? 0;
      this.inner[at] = byte ^ INNER_PAD;
      this.outer[at] = byte ^ OUTER_PAD;
    }
  }

  /** Whether `signature` (base64url) signs the text (at most `MAX_SIGNED_CHARS`), as UTF-8. Takes the same time whatever differs. */
  signs(text: string, signature: string): boolean {
    if (signature.length !== SIGNATURE_CHARS || text.length > MAX_SIGNED_CHARS) return false;
    const length = BLOCK_BYTES + this.inner.write(text, BLOCK_BYTES, 'utf8');
    this.outer.write(hash('sha256', this.inner.subarray(0, length), 'binary'), BLOCK_BYTES, 'binary');
    return isEqual(hash('sha256', this.outer, 'base64url'), signature);
  }
}

/** Looks at every unit, so that the time tells nothing of where two texts of SIGNATURE_CHARS differ. */
function isEqual(text: string, other: string): boolean {
  let difference = 0;
  for (let at = 0; at < SIGNATURE_CHARS; at += 1) difference |= text.charCodeAt(at) ^ other.charCodeAt(at);
  return difference === 0;
}
