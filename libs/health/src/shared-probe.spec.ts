import { describe, expect, it, vi } from 'vitest';
import { atMostDegraded, healthReport } from './health-report.js';
import { SharedProbe } from './shared-probe.js';

describe('a shared probe', () => {
  it('asks once for callers at the same time, and again for the next ones', async () => {
    const answers: ((value: number) => void)[] = [];
    const ask = vi.fn(() => new Promise<number>((resolve) => answers.push(resolve)));
    const probe = new SharedProbe(ask, 10_000);
    const readings = [probe.read(), probe.read(), probe.read()];
    answers[0]?.(7);
    expect(await Promise.all(readings)).toEqual(Array.from({ length: 3 }, () => ({ ok: true, value: 7 })));
    expect(ask).toHaveBeenCalledTimes(1);
    const next = probe.read();
    answers[1]?.(8);
    expect(await next).toEqual({ ok: true, value: 8 });
  });

  it('lets no caller wait beyond the limit, and no questions pile up behind a silent dependency', async () => {
    const ask = vi.fn(() => new Promise<number>(() => undefined));
    const probe = new SharedProbe(ask, 5);
    for (let i = 0; i < 3; i += 1) expect(await probe.read()).toEqual({ ok: false, reason: 'no answer within 5 ms' });
    expect(ask).toHaveBeenCalledTimes(1);
  });

  it('turns errors, thrown or rejected, into readings', async () => {
    expect(await new SharedProbe(() => Promise.reject(new Error('away')), 100).read()).toEqual({
      ok: false,
      reason: 'away',
    });
    const throwing = (): Promise<number> => {
      throw new Error('at once');
    };
    expect(await new SharedProbe(throwing, 100).read()).toEqual({ ok: false, reason: 'at once' });
  });

  it('gives a young answer again', async () => {
    const ask = vi.fn(() => Promise.resolve(1));
    const probe = new SharedProbe(ask, 100, 60_000);
    await probe.read();
    await probe.read();
    expect(ask).toHaveBeenCalledTimes(1);
  });
});

describe('a report', () => {
  it('is as bad as its worst part', () => {
    expect(healthReport({}).status).toBe('ok');
    expect(healthReport({ a: { status: 'ok' }, b: { status: 'degraded' } }).status).toBe('degraded');
    expect(healthReport({ a: { status: 'down' }, b: { status: 'degraded' } }).status).toBe('down');
  });
  it('can soften a part that does not decide, keeping its reason', () => {
    expect(atMostDegraded({ status: 'down', reason: 'x' })).toEqual({ status: 'degraded', reason: 'x' });
    expect(atMostDegraded({ status: 'ok' })).toEqual({ status: 'ok' });
  });
});
