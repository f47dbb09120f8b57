import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../setup/project-root.mjs';
import { picture } from './picture.js';
import { type BenchReport, figureTable, ratioTable, settingLines } from './report.js';

const BENCH = { begin: '<!-- bench: begin (written by npm run bench) -->', end: '<!-- bench: end -->' };
const PROFILE = {
  begin: '<!-- profile: begin (written by npm run bench -- --profile --publish) -->',
  end: '<!-- profile: end -->',
};
const PAGE = join(projectRoot, 'docs/performance.md');

/** Writes the figures of a whole run to where people look: the newest results, the picture, and the tables in docs/performance.md. */
export function publish(report: BenchReport): void {
  writeFileSync(join(projectRoot, 'bench/results/latest.json'), `${JSON.stringify(report, undefined, 1)}\n`);
  writeFileSync(join(projectRoot, 'docs/bench.svg'), picture(report));
  if (existsSync(PAGE)) writeFileSync(PAGE, withTables(readFileSync(PAGE, 'utf8'), report));
}

/** Writes the profile's tables into docs/performance.md. */
export function publishProfile(lines: readonly string[]): void {
  writeFileSync(PAGE, between(readFileSync(PAGE, 'utf8'), PROFILE, ['', ...lines]));
}

/** The page with the figures between their markers written anew. Throws where a marker is missing. */
export function withTables(page: string, report: BenchReport): string {
  return between(page, BENCH, ['', ...settingLines(report), '', ...ratioTable(report), '', ...figureTable(report), '']);
}

function between(page: string, marks: { begin: string; end: string }, lines: readonly string[]): string {
  const begin = page.indexOf(marks.begin);
  const end = page.indexOf(marks.end);
  if (begin < 0 || end < begin)
    throw new Error(`docs/performance.md lacks the markers ${marks.begin} and ${marks.end}`);
  return `${page.slice(0, begin + marks.begin.length)}\n${lines.join('\n')}\n${page.slice(end)}`;
}
