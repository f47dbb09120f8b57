import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../setup/project-root.mjs';
import { picture } from './picture.js';
import { type BenchReport, figureTable, ratioTable, settingLines } from './report.js';

const BEGIN = '<!-- bench: begin (written by npm run bench) -->';
const END = '<!-- bench: end -->';

/** Writes the figures of a whole run to where people look: the newest results, the picture, and the tables in docs/performance.md. */
export function publish(report: BenchReport): void {
  writeFileSync(join(projectRoot, 'bench/results/latest.json'), `${JSON.stringify(report, undefined, 1)}\n`);
  writeFileSync(join(projectRoot, 'docs/bench.svg'), picture(report));
  const page = join(projectRoot, 'docs/performance.md');
  if (existsSync(page)) writeFileSync(page, withTables(readFileSync(page, 'utf8'), report));
}

/** The page with the part between the two markers written anew. Throws where a marker is missing. */
export function withTables(page: string, report: BenchReport): string {
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END);
  if (begin < 0 || end < begin) throw new Error(`docs/performance.md lacks the markers ${BEGIN} and ${END}`);
  const part = ['', ...settingLines(report), '', ...ratioTable(report), '', ...figureTable(report), ''];
  return `${page.slice(0, begin + BEGIN.length)}\n${part.join('\n')}\n${page.slice(end)}`;
}
