import { cpus, totalmem } from 'node:os';
import { perSecond, type Sample, wholeCpuUs } from './measurement.js';
import { judge, type Judgement, type RatioRow, type RatioRule, ruleOf } from './ratios.js';
import type { BenchResult } from './run.js';
import { shown, type Spread, spread } from './statistics.js';

/** What the figures were taken on and with. */
export interface BenchSetting {
  readonly takenAt: string;
  readonly smoke: boolean;
  readonly rounds: number;
  readonly machine: string;
  readonly loadAverageBefore: number;
  readonly versions: Readonly<Record<string, string>>;
  readonly settings: Readonly<Record<string, string>>;
  readonly sizes: object;
}

export interface BenchReport {
  readonly setting: BenchSetting;
  readonly ratios: readonly RatioLine[];
  readonly figures: readonly FigureLine[];
}

export interface RatioLine extends Spread {
  readonly ratio: string;
  readonly title: string;
  readonly rule: RatioRule;
  readonly judgement: Judgement;
  readonly values: readonly number[];
}

export interface FigureLine {
  readonly name: string;
  readonly operationsPerSecond: Spread;
  readonly p99Ms: Spread | undefined;
  /** Medians of microseconds per operation, by process. */
  readonly cpuUs: Readonly<Record<string, number>>;
  /** All processes but the generator. */
  readonly wholeCpuUs: number;
  /** The share of one core that the generator used; above 0.9 it may have been the bottleneck. */
  readonly generatorShare: number | undefined;
  readonly samples: readonly Sample[];
}

export function machine(): string {
  const [first] = cpus();
  return `${cpus().length} cores (${first?.model.trim() ?? 'unknown'}), ${Math.round(totalmem() / 2 ** 30)} GiB, ${process.platform} ${process.arch}`;
}

export function reportOf(setting: BenchSetting, { figures, rows }: BenchResult): BenchReport {
  return {
    setting,
    ratios: rows.map(ratioLine),
    figures: [...figures].map(([name, samples]) => figureLine(name, samples)),
  };
}

function ratioLine(row: RatioRow): RatioLine {
  const rule = ruleOf(row);
  const values = spread(row.values);
  return {
    ratio: row.variant === '' ? row.name : `${row.name} ${row.variant}`,
    title: rule.title,
    rule,
    judgement: judge(rule, values.median),
    ...values,
    values: row.values,
  };
}

function figureLine(name: string, samples: readonly Sample[]): FigureLine {
  const processes = Object.keys(samples[0]?.cpuUs ?? {});
  const cpuUs = Object.fromEntries(
    processes.map((process) => [process, spread(samples.map((sample) => sample.cpuUs[process] ?? NaN)).median]),
  );
  const p99 = samples.flatMap(({ p99Ms }) => (p99Ms === undefined ? [] : [p99Ms]));
  const shares = samples.flatMap((sample) => {
    const us = sample.cpuUs['generator'];
    return us === undefined ? [] : [(us * sample.operations) / (sample.wallMs * 1_000)];
  });
  return {
    name,
    operationsPerSecond: spread(samples.map(perSecond)),
    p99Ms: p99.length === 0 ? undefined : spread(p99),
    cpuUs,
    wholeCpuUs: spread(samples.map(wholeCpuUs)).median,
    generatorShare: shares.length === 0 ? undefined : spread(shares).median,
    samples,
  };
}

const MARKS: Record<Judgement, string> = { AIM: '✓✓', BOUND: '✓', MISSED: '✗' };
const BUSY_GENERATOR = 0.9;

const limit = ({ direction, unit }: RatioRule, value: number): string =>
  `${direction === 'most' ? '≤' : '≥'} ${value}${unit === undefined ? '' : ` ${unit}`}`;

/** The ratios as a Markdown table. */
export function ratioTable(report: BenchReport): string[] {
  return [
    '| | what | median | range | bound | aim |',
    '|---|---|---|---|---|---|',
    ...report.ratios.map(
      ({ ratio, title, rule, judgement, median, min, max }) =>
        `| ${MARKS[judgement]} ${ratio} | ${title} | **${shown(median)}** | ${shown(min)} – ${shown(max)} | ${limit(rule, rule.bound)} | ${limit(rule, rule.aim)} |`,
    ),
  ];
}

/** What was measured, as a Markdown table. */
export function figureTable(report: BenchReport): string[] {
  return [
    '| what | per second, median (range) | p99 ms | CPU µs per operation | all | generator µs (share of a core) |',
    '|---|---|---|---|---|---|',
    ...report.figures.map((line) => {
      const { median, min, max } = line.operationsPerSecond;
      const parts = Object.entries(line.cpuUs)
        .filter(([name]) => name !== 'generator')
        .map(([name, us]) => `${name} ${shown(us)}`);
      const p99 = line.p99Ms === undefined ? '' : shown(line.p99Ms.median);
      return `| ${line.name} | ${shown(median)} (${shown(min)} – ${shown(max)}) | ${p99} | ${parts.join(', ')} | ${shown(line.wholeCpuUs)} | ${generatorCell(line)} |`;
    }),
  ];
}

function generatorCell({ cpuUs, generatorShare }: FigureLine): string {
  const us = cpuUs['generator'];
  if (us === undefined || generatorShare === undefined) return '';
  const warning = generatorShare > BUSY_GENERATOR ? ', **it may have been the bottleneck**' : '';
  return `${shown(us)} (${Math.round(generatorShare * 100)} %${warning})`;
}

/** Where and how it was measured, as lines of Markdown. */
export function settingLines({ setting }: BenchReport): string[] {
  const pairs = (facts: Readonly<Record<string, string>>): string =>
    Object.entries(facts)
      .map(([name, value]) => `${name} ${value}`)
      .join(', ');
  return [
    `Taken ${setting.takenAt} on ${setting.machine}; load average before: ${setting.loadAverageBefore.toFixed(1)}; ${setting.rounds} rounds, A and B in turn; medians and ranges over the rounds.`,
    `${pairs(setting.versions)}. ${pairs(setting.settings)}.`,
    ...(setting.smoke ? ['**Smoke size: these figures mean nothing.**'] : []),
  ];
}
