import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { parseBenchOptions } from '../../scripts/bench/options.js';
import { withTables } from '../../scripts/bench/publish.js';
import { judge, RATIOS, ruleOf } from '../../scripts/bench/ratios.js';
import { type BenchReport, ratioTable } from '../../scripts/bench/report.js';
import { picture } from '../../scripts/bench/picture.js';
import { median, shown } from '../../scripts/bench/statistics.js';

const run = promisify(execFile);
const root = join(import.meta.dirname, '../..');
const dir = mkdtempSync(join(tmpdir(), 'bench-spec-'));
const file = join(dir, 'figures.json');
afterAll(() => rmSync(dir, { recursive: true, force: true }));

describe('npm run bench', () => {
  it('measures every ratio on the real product, its references and its peers', { timeout: 180_000 }, async () => {
    await run(process.execPath, ['scripts/run.mjs', 'bench', '--smoke', '--json', file], { cwd: root });
    const report = JSON.parse(readFileSync(file, 'utf8')) as BenchReport;

    const measured = new Set(report.ratios.map(({ ratio }) => ratio.split(' ')[0]));
    expect([...measured].sort()).toEqual(Object.keys(RATIOS).sort());
    for (const { ratio, values, median: middle } of report.ratios) {
      expect(values.length, ratio).toBe(report.setting.rounds);
      expect(Number.isFinite(middle), `${ratio} is ${middle}`).toBe(true);
    }
    for (const { name, samples, operationsPerSecond } of report.figures) {
      expect(operationsPerSecond.median, name).toBeGreaterThan(0);
      for (const { operations } of samples) expect(operations, name).toBeGreaterThan(0);
    }
    const stored = report.figures.find(({ name }) => name === 'the product, load and storing at once');
    expect(Object.keys(stored?.cpuUs ?? {}).sort()).toEqual(['api', 'generator', 'postgres', 'redis', 'worker']);
    expect(picture(report)).toContain('Lua + BullMQ');

    const page =
      'before\n<!-- bench: begin (written by npm run bench) -->\nthe figures of last time\n<!-- bench: end -->\nafter\n';
    const written = withTables(page, report);
    expect(written).toContain(ratioTable(report).join('\n'));
    expect(written).not.toContain('the figures of last time');
    expect(withTables(written, report)).toBe(written);
  });
});

describe('the verdict', () => {
  it('tells aim, bound and miss apart, in the direction of the rule', () => {
    expect(judge(ruleOf({ name: 'R1', variant: '' }), 1.0)).toBe('AIM');
    expect(judge(ruleOf({ name: 'R1', variant: '' }), 1.5)).toBe('BOUND');
    expect(judge(ruleOf({ name: 'R1', variant: '' }), 1.51)).toBe('MISSED');
    expect(judge(ruleOf({ name: 'R6', variant: 'bullmq' }), 8)).toBe('AIM');
    expect(judge(ruleOf({ name: 'R6', variant: 'database only' }), 8)).toBe('MISSED');
    expect(judge(ruleOf({ name: 'R4', variant: '' }), NaN)).toBe('MISSED');
  });
  it('takes the middle, and shows three digits', () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 2, 3])).toBe(2.5);
    expect(median([])).toBeNaN();
    expect([0, 0.0123, 1.234, 98.76, 12_345.6].map(shown)).toEqual(['0', '0.0123', '1.23', '98.8', '12,346']);
  });
});

describe('the command line', () => {
  it('names every fault at once', () => {
    const parsed = parseBenchOptions(['--rounds', '0', '--only', 'R1,R99']);
    expect(parsed).toMatchObject({ kind: 'BAD' });
    expect(parsed.kind === 'BAD' && parsed.problems).toHaveLength(2);
    expect(parseBenchOptions(['--nonsense']).kind).toBe('BAD');
  });
  it('measures everything in five rounds unless asked for less', () => {
    const whole = parseBenchOptions([]);
    expect(whole).toMatchObject({ kind: 'RUN', options: { rounds: 5, smoke: false, publish: true } });
    const some = parseBenchOptions(['--only', 'R3', '--rounds', '2']);
    expect(some).toMatchObject({ kind: 'RUN', options: { rounds: 2, publish: false } });
  });
});
