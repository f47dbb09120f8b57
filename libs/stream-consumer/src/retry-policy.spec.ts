import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  describeError,
  FIRST_PAUSE_MS,
  LONGEST_PAUSE_MS,
  nextGroupSize,
  pauseMs,
  streamTrouble,
} from './retry-policy.js';

describe('pauseMs', () => {
  it('grows with each failure, spreads by jitter, and never exceeds the longest pause', () => {
    expect([1, 2, 3, 4, 5, 6, 1_000].map((failures) => pauseMs(failures, 0))).toEqual([
      FIRST_PAUSE_MS,
      200,
      400,
      800,
      1_600,
      LONGEST_PAUSE_MS,
      LONGEST_PAUSE_MS,
    ]);
    fc.assert(
      fc.property(fc.nat(), fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (failures, random) => {
        const pause = pauseMs(failures, random);
        expect(pause).toBeLessThanOrEqual(LONGEST_PAUSE_MS);
        expect(pause).toBeGreaterThanOrEqual(failures === 0 ? 0 : FIRST_PAUSE_MS / 2);
      }),
    );
  });

  it('waits not at all where nothing failed', () => {
    expect(pauseMs(0, 0.5)).toBe(0);
    expect(pauseMs(Number.NaN, 0.5)).toBe(0);
  });
});

describe('nextGroupSize', () => {
  it('comes down to a single order while groups fail, and back to the full batch when they succeed', () => {
    let size = 1_000;
    for (let failures = 0; failures < 10; failures += 1) size = nextGroupSize(size, false, 1_000);
    expect(size).toBe(1);
    for (let successes = 0; successes < 10; successes += 1) size = nextGroupSize(size, true, 1_000);
    expect(size).toBe(1_000);
  });
});

describe('streamTrouble', () => {
  it.each([
    ['NOGROUP No such key or consumer group', 'GROUP_MISSING'],
    ['UNBLOCKED the stream key no longer exists', 'GROUP_MISSING'],
    ['WRONGTYPE Operation against a key holding the wrong kind of value', 'WRONG_TYPE'],
    ["NOPERM this user has no permissions to run the 'xreadgroup' command", 'NO_RIGHTS'],
    ['WRONGPASS invalid username-password pair', 'NO_RIGHTS'],
    ['MISCONF Redis is configured to save RDB snapshots', 'PASSING'],
    ['Connection is closed.', 'PASSING'],
    ['ERR there is NOGROUP in this text', 'PASSING'],
  ])('sorts %s as %s', (message, trouble) => {
    expect(streamTrouble(new Error(message))).toBe(trouble);
  });
});

it('describes an error in one line of bounded length', () => {
  const line = describeError(new TypeError(`first\n second ${'x'.repeat(1_000)}`));
  expect(line).toMatch(/^TypeError: first second x+\.\.\.$/);
  expect(line.length).toBeLessThanOrEqual(303);
});
