/**
 * The newest entries by their key, in bounded memory: two maps of half the size, the older of which is dropped when the newer is full. What is asked
 * for moves to the newer one. Costs a fraction of a list of least recently used ones, where nearly every key is new.
 */
export class RecentEntries<V> {
  private newer = new Map<string, V>();
  private older = new Map<string, V>();
  private readonly half: number;

  /** Keeps at most `max` entries, and at least the newest half of them. */
  constructor(max: number) {
    this.half = Math.max(1, Math.floor(max / 2));
  }

  get(key: string): V | undefined {
    const value = this.newer.get(key);
    if (value !== undefined || this.older.size === 0) return value;
    const known = this.older.get(key);
    if (known !== undefined) {
      this.older.delete(key);
      this.set(key, known);
    }
    return known;
  }

  set(key: string, value: V): void {
    if (this.newer.size >= this.half) {
      this.older = this.newer;
      this.newer = new Map();
    }
    this.newer.set(key, value);
  }

  delete(key: string): void {
    this.newer.delete(key);
    this.older.delete(key);
  }

  get size(): number {
    return this.newer.size + this.older.size;
  }
}
