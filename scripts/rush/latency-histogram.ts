/** Values below this are counted one by one; above it, 128 buckets cover each doubling: errors stay below 1 %. */
const EXACT = 256;
const PER_DOUBLING = 128;
/** 2^36 us are 19 hours: nothing measured here takes longer. */
const DOUBLINGS = 28;

/** Counts durations in microseconds, in constant memory. */
export class LatencyHistogram {
  private readonly buckets = new Uint32Array(EXACT + DOUBLINGS * PER_DOUBLING);
  private recorded = 0;
  private largestUs = 0;
  private sumUs = 0;

  /** Counts one duration. Negative ones (a clock that was set) count as 0. */
  record(us: number): void {
    const value = Math.max(0, Math.round(us));
    const bucket = Math.min(bucketOf(value), this.buckets.length - 1);
    this.buckets[bucket] = (this.buckets[bucket] as number) + 1;
    this.recorded += 1;
    this.sumUs += value;
    if (value > this.largestUs) this.largestUs = value;
  }

  get count(): number {
    return this.recorded;
  }

  get maxUs(): number {
    return this.largestUs;
  }

  /** 0 where nothing was counted. */
  get meanUs(): number {
    return this.recorded === 0 ? 0 : this.sumUs / this.recorded;
  }

  /** The duration that `share` (0..1) of the counted ones do not exceed, within 1 %; 0 where nothing was counted. */
  quantileUs(share: number): number {
    const rank = Math.max(1, Math.ceil(share * this.recorded));
    let seen = 0;
    for (let bucket = 0; bucket < this.buckets.length; bucket += 1) {
      seen += this.buckets[bucket] as number;
      if (seen >= rank) return Math.min(upperEndOf(bucket), this.largestUs);
    }
    return this.largestUs;
  }

  /** How many durations lie in each interval that ends at one of `endsUs` (ascending); the last count is of all that are longer. */
  countsUpTo(endsUs: readonly number[]): number[] {
    const counts = new Array<number>(endsUs.length + 1).fill(0);
    this.buckets.forEach((count, bucket) => {
      if (count === 0) return;
      const at = endsUs.findIndex((end) => upperEndOf(bucket) <= end);
      const interval = at < 0 ? endsUs.length : at;
      counts[interval] = (counts[interval] as number) + count;
    });
    return counts;
  }
}

function bucketOf(value: number): number {
  if (value < EXACT) return value;
  const doubling = Math.floor(Math.log2(value)) - 8;
  return EXACT + doubling * PER_DOUBLING + Math.floor(value / 2 ** (doubling + 1)) - PER_DOUBLING;
}

/** The largest value that the bucket counts. */
function upperEndOf(bucket: number): number {
  if (bucket < EXACT) return bucket;
  const doubling = Math.floor((bucket - EXACT) / PER_DOUBLING);
  const place = (bucket - EXACT) % PER_DOUBLING;
  return (place + PER_DOUBLING + 1) * 2 ** (doubling + 1) - 1;
}
