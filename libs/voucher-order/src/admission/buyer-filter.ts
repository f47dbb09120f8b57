const BITS_PER_BUYER = 16;
/** A filter of few buyers costs little: with 8 KiB hardly anybody else is taken for one of them. */
const LEAST_BITS = 65_536;
const PROBES = 6;

/**
 * Knows who may be a buyer: every user that was added, and at most about one in a thousand of all others. A Bloom filter (B. H. Bloom, 1970) with double
 * hashing (Kirsch and Mitzenmacher, 2006) over FNV-1a. Two to four bytes per buyer.
 */
export class BuyerFilter {
  private readonly words: Uint32Array;
  private readonly mask: number;

  /** Room for `buyers` users; more only make strangers pass for buyers more often. */
  constructor(buyers: number) {
    const bytes = BuyerFilter.bytesFor(buyers);
    this.words = new Uint32Array(bytes / Uint32Array.BYTES_PER_ELEMENT);
    this.mask = bytes * 8 - 1;
  }

  /** Bytes that a filter for so many buyers takes. */
  static bytesFor(buyers: number): number {
    return 2 ** Math.ceil(Math.log2(Math.max(LEAST_BITS, buyers * BITS_PER_BUYER))) / 8;
  }

  get bytes(): number {
    return this.words.byteLength;
  }

  add(userId: string): void {
    const { first, step } = hashes(userId);
    let hash = first;
    for (let probe = 0; probe < PROBES; probe += 1) {
      const bit = hash & this.mask;
      this.words[bit >>> 5]! |= 1 << (bit & 31);
      hash = (hash + step) | 0;
    }
  }

  /** False: certainly none of the users added. */
  mayHold(userId: string): boolean {
    const { first, step } = hashes(userId);
    let hash = first;
    for (let probe = 0; probe < PROBES; probe += 1) {
      const bit = hash & this.mask;
      if ((this.words[bit >>> 5]! & (1 << (bit & 31))) === 0) return false;
      hash = (hash + step) | 0;
    }
    return true;
  }
}

/** Two hashes of the digits: FNV-1a, and the same from another start, made odd so that the probes differ. */
function hashes(text: string): { first: number; step: number } {
  let hash = 0x811c9dc5;
  let step = 0x9747b28c;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    hash = Math.imul(hash ^ code, 0x01000193);
    step = Math.imul(step ^ code, 0x01000193);
  }
  // FNV leaves the low bits of similar ids similar: one round of mixing (murmur3's finalizer constants).
  return { first: mix(hash), step: mix(step) | 1 };
}

function mix(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}
