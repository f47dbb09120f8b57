import { expect, it, vi } from 'vitest';
import { LoginsUnavailableError, type LookUpTokens, TokenBatcher } from './token-batcher.js';

const suffixes: LookUpTokens = (tokens) => Promise.resolve(tokens.map((token) => token.slice(1)));

it('asks once for all tokens of a tick, once for the same token, and answers each its own', async () => {
  const lookUp = vi.fn(suffixes);
  const batcher = new TokenBatcher(lookUp, 100);
  expect(await Promise.all(['t1', 't2', 't1', 't3'].map((token) => batcher.find(token)))).toEqual(['1', '2', '1', '3']);
  expect(lookUp.mock.calls).toEqual([[['t1', 't2', 't3']]]);
});

it('remembers nothing: a later question is asked anew', async () => {
  const lookUp = vi.fn<LookUpTokens>().mockResolvedValueOnce(['1']).mockResolvedValueOnce([undefined]);
  const batcher = new TokenBatcher(lookUp, 100);
  expect(await batcher.find('t')).toBe('1');
  expect(await batcher.find('t')).toBeUndefined();
});

it('keeps calls within their size and number, and answers all', async () => {
  let open = 0;
  let most = 0;
  const batcher = new TokenBatcher(
    async (tokens) => {
      open += 1;
      most = Math.max(most, open);
      expect(tokens.length).toBeLessThanOrEqual(3);
      await new Promise(setImmediate);
      open -= 1;
      return suffixes(tokens);
    },
    100,
    3,
  );
  const tokens = Array.from({ length: 50 }, (_, index) => `t${index}`);
  expect(await Promise.all(tokens.map((token) => batcher.find(token)))).toEqual(tokens.map((token) => token.slice(1)));
  expect(most).toBe(4);
});

it('lets no token wait for others where each travels alone: one slow answer holds up none', async () => {
  const asked: string[] = [];
  const batcher = new TokenBatcher(
    ([token]) => {
      asked.push(token ?? '');
      return new Promise(() => undefined);
    },
    1_000,
    1,
  );
  for (let index = 0; index < 500; index += 1) void batcher.find(`t${index}`);
  await new Promise(setImmediate);
  expect(asked).toHaveLength(500);
});

it('refuses more than it may hold, and takes again once they are answered', async () => {
  const batcher = new TokenBatcher(suffixes, 2);
  const held = [batcher.find('t1'), batcher.find('t2')];
  await expect(batcher.find('t3')).rejects.toThrow(LoginsUnavailableError);
  expect(await Promise.all(held)).toEqual(['1', '2']);
  expect(await batcher.find('t3')).toBe('3');
});

it('tells a fault to all of its batch, and serves the next', async () => {
  const lookUp = vi.fn(suffixes).mockRejectedValueOnce(new Error('away')).mockResolvedValueOnce([]);
  const batcher = new TokenBatcher(lookUp, 100);
  const both = await Promise.allSettled([batcher.find('t1'), batcher.find('t2')]);
  expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  await expect(batcher.find('t1')).rejects.toThrow('0 answers');
  expect(await batcher.find('t1')).toBe('1');
});
