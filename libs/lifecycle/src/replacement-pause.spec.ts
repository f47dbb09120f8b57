import { expect, it } from 'vitest';
import { ReplacementPause } from './replacement-pause.js';

it('the pause before a replacement doubles up to ten seconds, and begins anew after a minute of service', () => {
  const pause = new ReplacementPause();
  expect(Array.from({ length: 9 }, () => pause.nextMs(0))).toEqual([
    100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000,
  ]);
  expect([pause.early, pause.nextMs(60_000), pause.nextMs(59_999)]).toEqual([9, 100, 200]);
});
