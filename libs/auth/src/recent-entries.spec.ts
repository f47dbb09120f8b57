import { describe, expect, it } from 'vitest';
import { RecentEntries } from './recent-entries.js';

describe('RecentEntries', () => {
  it('never holds more than it may, and always the newest half', () => {
    const entries = new RecentEntries<number>(10);
    for (let n = 0; n < 1_000; n += 1) {
      entries.set(String(n), n);
      expect(entries.size).toBeLessThanOrEqual(10);
      for (let back = 0; back < Math.min(5, n + 1); back += 1) expect(entries.get(String(n - back))).toBe(n - back);
    }
    expect(entries.get('0')).toBeUndefined();
  });
  it('keeps what is asked for again and again, however many others come', () => {
    const entries = new RecentEntries<number>(10);
    entries.set('often', 1);
    for (let n = 0; n < 100; n += 1) {
      entries.set(`other ${n}`, n);
      expect(entries.get('often')).toBe(1);
    }
  });
  it('forgets what is deleted, wherever it stands', () => {
    const entries = new RecentEntries<number>(4);
    for (const key of ['a', 'b', 'c']) entries.set(key, 1);
    for (const key of ['a', 'b', 'c']) entries.delete(key);
    for (const key of ['a', 'b', 'c']) expect(entries.get(key)).toBeUndefined();
    expect(entries.size).toBe(0);
  });
});
