import { expect, it } from 'vitest';
import { SharedTurn } from './shared-turn.js';

it('each asker hears of a turn that began after he asked, one runs at a time, and those who ask meanwhile share the next', async () => {
  const ends: (() => void)[] = [];
  let running = 0;
  const turn = new SharedTurn(async () => {
    expect((running += 1)).toBe(1);
    const number = ends.length + 1;
    await new Promise<void>((end) => ends.push(end));
    running -= 1;
    return number;
  });
  const asked = [turn.ask(), turn.ask(), turn.ask()];
  ends[0]?.();
  expect(await asked[0]).toBe(1);
  await expect.poll(() => ends.length).toBe(2);
  ends[1]?.();
  expect(await Promise.all(asked)).toEqual([1, 2, 2]);
});

it('a turn that fails fails its askers only', async () => {
  let turns = 0;
  const turn = new SharedTurn(async () => {
    turns += 1;
    await Promise.resolve();
    if (turns === 1) throw new Error('first');
    return turns;
  });
  const [first, second] = [turn.ask(), turn.ask()];
  await expect(first).rejects.toThrow('first');
  expect(await second).toBe(2);
});
