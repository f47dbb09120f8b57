import { describe, expect, it } from 'vitest';
import { isUserId } from '../services/signed-token.mjs';
import { BLOCKS, userIdsOf } from './crowd-ids.js';

const LAST_BUYER = 4_999_999;

describe('the ids of a crowd', () => {
  it.each([1, 2 ** 20, BLOCKS - 1])(
    'are ids that a service takes, from the first buyer to the last: block %d',
    (block) => {
      const userId = userIdsOf(block);
      for (const buyer of [0, 1, LAST_BUYER]) expect(isUserId(userId(buyer)), userId(buyer)).toBe(true);
    },
  );
  it('of two blocks are apart', () => {
    expect(BigInt(userIdsOf(7)(LAST_BUYER))).toBeLessThan(BigInt(userIdsOf(8)(0)));
  });
});
