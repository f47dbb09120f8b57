/** Order ids: 31 bits of seconds since 2022-01-01T00:00:00Z, then 32 bits of sequence, as a canonical decimal string. */

export const ORDER_ID_EPOCH_SECONDS = Date.UTC(2022, 0, 1) / 1_000;
/** Sequences wrap here. */
export const SEQUENCE_LIMIT = 2 ** 32;
const SECONDS_LIMIT = 2 ** 31;
const LOW_DIGITS = 10;
const LOW_LIMIT = 10 ** LOW_DIGITS;

/**
 * Writes ids of one second after another. The large product is made once per second; an id then costs one addition and one string, no BigInt:
 * `seconds * 2^32` is kept as two decimal limbs, and a sequence only touches the lower one.
 */
export class OrderIdFormat {
  private second = -1;
  private high = 0;
  private low = 0;

  /** The id of (`unixSeconds`, `sequence`), or undefined where the clock is outside 2022..2090. `sequence` is 0..2^32-1. */
  format(unixSeconds: number, sequence: number): string | undefined {
    const second = unixSeconds - ORDER_ID_EPOCH_SECONDS;
    // Second 0 with sequence 0 would be the id 0, which is none.
    if (second < 1 || second >= SECONDS_LIMIT) return undefined;
    if (second !== this.second) this.turnTo(second);
    let low = this.low + sequence;
    let high = this.high;
    if (low >= LOW_LIMIT) {
      low -= LOW_LIMIT;
      high += 1;
    }
    return high === 0 ? String(low) : `${high}${String(low).padStart(LOW_DIGITS, '0')}`;
  }

  private turnTo(second: number): void {
    const base = BigInt(second) * BigInt(SEQUENCE_LIMIT);
    this.second = second;
    this.high = Number(base / BigInt(LOW_LIMIT));
    this.low = Number(base % BigInt(LOW_LIMIT));
  }
}

/** The Unix second in which an id of ours was made. Any canonical id has one; whether it is an id of ours it cannot say. */
export function unixSecondOfOrderId(orderId: string): number {
  return Number(BigInt(orderId) >> 32n) + ORDER_ID_EPOCH_SECONDS;
}
