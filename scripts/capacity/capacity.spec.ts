import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { capacityOf, type Demand } from './capacity-model.js';
import { capacityLines } from './capacity-report.js';
import { costsOf, type MeasuredCosts, NoCostsError, readCosts } from './measured-costs.js';

const costs: MeasuredCosts = {
  takenAt: '2026-11-30T00:00:00Z',
  machine: '2 cores',
  acceptedApiUs: 30,
  acceptedRedisUs: 6,
  refusedApiUs: 15,
  storedPerSecond: 20_000,
};
const demand: Demand = { rate: 1_000_000, buyers: 50_000_000, stock: 100_000, vouchers: 1, storedWithinSeconds: 60 };
const report = (takenAt: string, api: number, smoke = false) => ({
  setting: { takenAt, machine: '2 cores', smoke },
  figures: [
    { name: 'acceptance, 64 connections', operationsPerSecond: { median: 9000 }, cpuUs: { api, redis: 6 } },
    { name: 'sold-out answers', operationsPerSecond: { median: 20_000 }, cpuUs: { api: 15, redis: 0.1 } },
    { name: 'drain of a queue', operationsPerSecond: { median: 20_000 }, cpuUs: { worker: 20 } },
  ],
});

describe('the model', () => {
  it('counts processes from the costs: a million refusals a second, a tenth of a second of selling', () => {
    expect(capacityOf(demand, costs)).toMatchObject({
      acceptedPerSecond: 100_000,
      refusedPerSecond: 1_000_000,
      sellsForSeconds: 0.1,
      apiProcesses: 25, // 1,000,000 x 15 us / 0.6 s
      redisPrimaries: 1, // 100,000 x 6 us = 0.6 s
      databaseWritesPerSecond: 1667,
      workers: 1,
    });
  });

  it('never asks for less when more is wanted', () => {
    const amount = fc.integer({ min: 1, max: 100_000_000 });
    fc.assert(
      fc.property(amount, amount, amount, fc.integer({ min: 2, max: 9 }), (rate, buyers, stock, times) => {
        const small = capacityOf({ ...demand, rate, buyers, stock }, costs);
        const large = capacityOf(
          { ...demand, rate: rate * times, buyers: buyers * times, stock: stock * times },
          costs,
        );
        for (const what of ['apiProcesses', 'redisPrimaries', 'workers', 'databaseWritesPerSecond'] as const)
          expect(large[what]).toBeGreaterThanOrEqual(small[what]);
      }),
    );
  });

  it('tells a voucher that is too hot for one core', () => {
    const hot = { ...demand, stock: 1_000_000 };
    expect(capacityLines(hot, costs, capacityOf(hot, costs)).join('\n')).toContain('One very hot voucher');
    const many = { ...hot, vouchers: 100 };
    expect(capacityLines(many, costs, capacityOf(many, costs)).join('\n')).not.toContain('One very hot voucher');
  });
});

describe('the costs', () => {
  it('are those of the newest whole bench', () => {
    const folder = mkdtempSync(join(tmpdir(), 'flash-sale-capacity-'));
    try {
      expect(() => readCosts(folder)).toThrow(NoCostsError);
      for (const [name, content] of [
        ['a.json', report('2026-01-02', 31)],
        ['b.json', report('2026-01-01', 99)],
        ['c.json', report('2026-01-03', 98, true)],
      ] as const)
        writeFileSync(join(folder, name), JSON.stringify(content));
      expect(readCosts(folder)).toMatchObject({ takenAt: '2026-01-02', acceptedApiUs: 31, storedPerSecond: 20_000 });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('are not guessed where the bench did not measure them', () => {
    const { setting, figures } = report('2026-01-01', 30);
    expect(() => costsOf({ setting, figures: figures.slice(1) })).toThrow('acceptance, 64 connections');
    expect(() => costsOf({ setting, figures: [{ name: 'acceptance, 64 connections' }, ...figures.slice(1)] })).toThrow(
      NoCostsError,
    );
  });
});
