import { describe, expect, it } from 'vitest';
import { parseRushOptions } from './options.js';

describe('parseRushOptions', () => {
  it('has the usual rush where nothing is given', () => {
    expect(parseRushOptions([])).toEqual({
      kind: 'RUN',
      options: {
        buyers: 20_000,
        stock: 500,
        connections: 128,
        rate: undefined,
        urls: [],
        processes: 1,
        killEveryMs: undefined,
        tries: 10,
        settleMs: 30_000,
        jsonFile: undefined,
        quiet: false,
      },
    });
  });

  it('takes an open load with room for slow answers, several services, a file', () => {
    const parsed = parseRushOptions(
      '--rate 5000 --url http://127.0.0.1:3000 --url http://127.0.0.1:3001/ --json out.json --quiet'.split(' '),
    );
    expect(parsed).toMatchObject({
      kind: 'RUN',
      options: {
        rate: 5_000,
        connections: 1_024,
        urls: ['http://127.0.0.1:3000', 'http://127.0.0.1:3001'],
        jsonFile: 'out.json',
        quiet: true,
      },
    });
  });

  it('names every bad value at once', () => {
    const parsed = parseRushOptions(['--buyers', '0', '--stock', '1e3', '--rate=-5', '--url', 'localhost:3000']);
    const problems = parsed.kind === 'BAD' ? parsed.problems : [];
    for (const name of ['--buyers', '--stock', '--rate', '--url']) expect(problems.join('\n')).toContain(name);
  });

  it('refuses unknown arguments, and processes for a service that is not its own', () => {
    expect(parseRushOptions(['--buyer', '5']).kind).toBe('BAD');
    expect(parseRushOptions(['--url', 'http://127.0.0.1:1', '--processes', '2'])).toMatchObject({ kind: 'BAD' });
    expect(parseRushOptions(['--url', 'http://127.0.0.1:1', '--kill-every', '1'])).toMatchObject({ kind: 'BAD' });
    expect(parseRushOptions(['--kill-every', '2'])).toMatchObject({ options: { killEveryMs: 2_000 } });
    expect(parseRushOptions(['--help'])).toEqual({ kind: 'HELP' });
  });
});
