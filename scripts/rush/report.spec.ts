import { describe, expect, it } from 'vitest';
import { LatencyHistogram } from './latency-histogram.js';
import { duration, reportJson, reportLines, type RushResult } from './report.js';

function result(kept: boolean | undefined): RushResult {
  const latency = new LatencyHistogram();
  for (const us of [800, 1_500, 1_700, 40_000]) latency.record(us);
  return {
    load: { kind: 'open', connections: 1_024, rate: 5_000 },
    target: { urls: ['http://127.0.0.1:3000'], processes: 2, voucherId: '17', kills: 0 },
    lookedThrough: 'PostgreSQL and Redis',
    facts: {} as RushResult['facts'],
    promises: [{ promise: 'never oversold', kept, detail: '0 oversold' }],
    throughput: {
      seconds: 2,
      answersPerSecond: 10_000,
      acceptedPerSecond: 250,
      storedPerSecond: 240,
      storedAfterSeconds: 2.1,
    },
    latency,
    answers: new Map([
      ['QUEUED', 500],
      ['SOLD_OUT', 19_500],
    ]),
    generatorCpuShare: 0.97,
    warnings: ['the generator used 97 % of a core'],
  };
}

describe('the report', () => {
  it('has promises, throughput, latency with its origin, what buyers saw, warnings and a verdict', () => {
    const text = reportLines(result(true), { quiet: false, colour: false }).join('\n');
    for (const part of [
      '✓ never oversold',
      'looked at through PostgreSQL and Redis',
      'open load, 5,000 purchases/s, at most 1024 connections, 2 API processes',
      'stored    240/s, the last after 2.10 s',
      'from the intended time',
      'SOLD_OUT                   19,500',
      '! the generator used 97 % of a core',
      '✓ every promise is kept',
    ])
      expect(text).toContain(part);
    expect(text).toMatch(/up to 1 ms █+ 1\n +up to 2 ms █+ 2\n +up to 5 ms {2}0\n/);
  });

  it('shows a cross for what is broken and a question mark for what was not seen', () => {
    expect(reportLines(result(false), { quiet: true, colour: false }).join('\n')).toMatch(
      /✗ never oversold[^]*✗ 1 of 1 promises broken/,
    );
    const unseen = reportLines(result(undefined), { quiet: true, colour: false });
    expect(unseen.join('\n')).toMatch(/\? never oversold[^]*\(1 could not be looked at\)/);
    expect(unseen).toHaveLength(4);
  });

  it('gives programs the same figures', () => {
    expect(JSON.parse(JSON.stringify(reportJson(result(true))))).toMatchObject({
      kept: true,
      latencyUs: { max: 40_000, count: 4 },
      answers: { QUEUED: 500, SOLD_OUT: 19_500 },
      target: { processes: 2 },
    });
    expect(reportJson(result(false))['kept']).toBe(false);
  });

  it('writes durations for people', () => {
    expect([12, 1_234, 56_789, 2_500_000].map(duration)).toEqual(['12 us', '1.23 ms', '56.8 ms', '2.50 s']);
  });
});
