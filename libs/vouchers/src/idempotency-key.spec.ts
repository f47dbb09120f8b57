import { describe, expect, it } from 'vitest';
import { ProblemException } from '#http';
import { isSameCall, namedCall } from './idempotency-key.repository.js';

const hashOf = (body: Record<string, unknown>, instants: number[] = [], route = 'POST /v1/vouchers'): string =>
  namedCall('k', '1', route, body, instants)?.requestHash ?? '';

describe('an Idempotency-Key', () => {
  it('names nothing where it is missing, and is refused where it breaks the format', () => {
    expect(namedCall(undefined, '1', 'r', {})).toBeUndefined();
    for (const bad of ['', ' ', 'a b', 'é', 'x'.repeat(256)]) {
      expect(() => namedCall(bad, '1', 'r', {})).toThrow(ProblemException);
    }
    expect(namedCall('x'.repeat(255), '1', 'r', {})).toBeDefined();
  });

  it('stands for one route and one body, in whatever order its members come', () => {
    const first = hashOf({ a: 1, b: 'x' });
    expect(isSameCall(first, hashOf({ b: 'x', a: 1 }), 0)).toBe(true);
    for (const other of [
      hashOf({ a: 1, b: 'y' }),
      hashOf({ a: 1 }),
      hashOf({ a: 1, b: 'x' }, [], 'PATCH /v1/vouchers/1/stock'),
    ]) {
      expect(isSameCall(first, other, 0)).toBe(false);
    }
    expect(isSameCall(hashOf({ a: '1' }), hashOf({ a: 1 }), 0)).toBe(false);
  });

  it('lets times move as far as the clock did, a minute at most, and no further', () => {
    const first = hashOf({}, [1_000_000, 2_000_000]);
    const moved = (ms: number): string => hashOf({}, [1_000_000 + ms, 2_000_000 + ms]);
    expect(isSameCall(first, moved(0), 0)).toBe(true);
    expect(isSameCall(first, moved(20), 5)).toBe(true);
    expect(isSameCall(first, moved(5_000), 5_000)).toBe(true);
    expect(isSameCall(first, moved(30_000), 5_000)).toBe(false);
    expect(isSameCall(first, moved(-5_000), 5_000)).toBe(false);
    expect(isSameCall(first, moved(3_600_000), 3_600_000)).toBe(false);
    expect(isSameCall(first, hashOf({}, [1_000_000]), 0)).toBe(false);
  });

  it('fits its column', () => {
    expect(hashOf({ a: 1 }, [253_402_300_799_999, 253_402_300_799_999]).length).toBeLessThanOrEqual(64);
  });
});
