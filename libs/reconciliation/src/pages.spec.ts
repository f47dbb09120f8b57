import { setImmediate as nextTick } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { pieces, sideBySide } from './pages.js';

describe('pieces', () => {
  it('cut a list without losing or repeating anything', () => {
    expect([...pieces([1, 2, 3, 4, 5], 2)]).toEqual([[1, 2], [3, 4], [5]]);
    expect([...pieces([], 2)]).toEqual([]);
  });
});

describe('sideBySide', () => {
  it('never does more at once than it may, and answers in the order of the items', async () => {
    let running = 0;
    let most = 0;
    const results = await sideBySide([5, 1, 4, 2, 3], 2, async (item) => {
      running += 1;
      most = Math.max(most, running);
      for (let turn = 0; turn < item; turn += 1) await nextTick();
      running -= 1;
      return item * 10;
    });
    expect(results).toEqual([50, 10, 40, 20, 30]);
    expect(most).toBe(2);
  });

  it('throws the first failure once what was beside it has ended, and begins nothing further', async () => {
    const begun: number[] = [];
    const ended: number[] = [];
    const work = sideBySide([1, 2, 3, 4], 2, async (item) => {
      begun.push(item);
      if (item === 1) throw new Error('first');
      await nextTick();
      await nextTick();
      ended.push(item);
    });
    await expect(work).rejects.toThrow('first');
    expect(begun).toEqual([1, 2]);
    expect(ended).toEqual([2]);
  });

  it('has nothing to do for no item', async () => {
    expect(await sideBySide([], 4, () => Promise.reject(new Error('never')))).toEqual([]);
  });
});
