import { expect, it } from 'vitest';
import { RateLimit } from './rate-limit.js';

it('lets a burst through, then its rate, and never saves up more than the burst', () => {
  let nowMs = 0;
  const limit = new RateLimit(10, 3, () => nowMs);
  const takeAll = (): number => {
    let taken = 0;
    while (taken < 100 && limit.take()) taken += 1;
    return taken;
  };
  expect(takeAll()).toBe(3);
  nowMs += 99;
  expect(takeAll()).toBe(0);
  nowMs += 1;
  expect(takeAll()).toBe(1);
  nowMs += 200;
  expect(takeAll()).toBe(2);
  nowMs += 3_600_000;
  expect(takeAll()).toBe(3);
});
