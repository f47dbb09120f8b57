import { readFileSync, writeFileSync } from 'node:fs';
import type { Result } from './runner.js';

/** The table of a run, as Markdown. */
export function table(results: readonly Result[]): string {
  const head = ['scenario', 'accepted', 'stored', 'rejected', 'unknown', 'recovery ms', 'result'];
  const rows = results.map((result) => [
    `${result.id} ${result.title}${result.notes.length === 0 ? '' : ` (${result.notes.join(', ')})`}`,
    ...(result.skipped === undefined
      ? [
          String(result.accepted),
          String(result.stored),
          String(result.rejected),
          String(result.unknown),
          result.recoveryMs === undefined ? '' : String(result.recoveryMs),
          result.broken.length === 0 ? 'holds' : 'BROKEN',
        ]
      : ['', '', '', '', '', `skipped: ${result.skipped}`]),
  ]);
  return markdown(head, rows);
}

/** Rows of text as a Markdown table. */
export function markdown(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const clean = (text: string) => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
  const line = (cells: readonly string[]) => `| ${cells.map(clean).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

/**
 * Replaces what stands between the marker comments `<!-- name -->` and `<!-- /name -->` of a page.
 * @throws Error where the page lacks the markers
 */
export function writeBetweenMarkers(file: string, name: string, text: string): void {
  const page = readFileSync(file, 'utf8');
  const [begin, end] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
  const from = page.indexOf(begin);
  const to = page.indexOf(end);
  if (from < 0 || to < from) throw new Error(`${file} has no place "${begin} ... ${end}"`);
  writeFileSync(file, `${page.slice(0, from + begin.length)}\n\n${text.trim()}\n\n${page.slice(to)}`);
}
