import type { BenchReport, FigureLine } from './report.js';
import { shown } from './statistics.js';

const BARS: readonly (readonly [figure: string, label: string])[] = [
  ['the product, load and storing at once', 'this product'],
  ['bullmq', 'Lua + BullMQ'],
  ['database only', 'database only'],
  ['source pipeline', 'script, COUNT 1 loop, lock per user'],
];
const WIDTH = 720;
const LEFT = 220;
const ROW = 30;
const PANEL_TOP = 46;
const FULL_BAR = WIDTH - LEFT - 110;

interface Bar {
  readonly label: string;
  readonly value: number;
  readonly isOurs: boolean;
}

/** Two panels of bars: stored orders per second, and CPU per stored order. Plain SVG that is readable on light and dark pages. */
export function picture(report: BenchReport): string {
  const found = BARS.flatMap(([name, label], at) => {
    const figure = report.figures.find((line) => line.name === name);
    return figure === undefined ? [] : [{ figure, label, isOurs: at === 0 }];
  });
  const bars = (value: (figure: FigureLine) => number): Bar[] =>
    found.map(({ figure, label, isOurs }) => ({ label, isOurs, value: value(figure) }));
  const height = PANEL_TOP + ROW * found.length;
  const { setting } = report;
  const caption = `${setting.machine}; medians of ${setting.rounds} rounds; Redis appendfsync always; ${setting.takenAt.slice(0, 10)}`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${2 * height + 40}" font-family="system-ui, sans-serif" font-size="14" role="img">`,
    '<title>Stored orders per second, and CPU per stored order, beside three other ways to build it</title>',
    `<rect width="${WIDTH}" height="${2 * height + 40}" fill="#ffffff"/>`,
    panel(
      0,
      'Stored orders per second, sustained (longer is better)',
      bars((figure) => figure.operationsPerSecond.median),
      '',
    ),
    panel(
      height,
      'CPU per stored order, all processes (shorter is better)',
      bars((figure) => figure.wholeCpuUs),
      ' µs',
    ),
    `<text x="16" y="${2 * height + 26}" font-size="11" fill="#57606a">${escaped(caption)}</text>`,
    '</svg>',
    '',
  ].join('\n');
}

function panel(top: number, title: string, bars: readonly Bar[], unit: string): string {
  const most = Math.max(...bars.map(({ value }) => value), Number.MIN_VALUE);
  return [
    `<text x="16" y="${top + 28}" font-weight="600" fill="#1f2328">${escaped(title)}</text>`,
    ...bars.map(({ label, value, isOurs }, row) => {
      const y = top + PANEL_TOP + ROW * row;
      const width = Math.max(2, (value / most) * FULL_BAR);
      return (
        `<text x="${LEFT - 10}" y="${y + 15}" text-anchor="end" fill="#1f2328"${isOurs ? ' font-weight="600"' : ''}>${escaped(label)}</text>` +
        `<rect x="${LEFT}" y="${y}" width="${width.toFixed(1)}" height="20" rx="3" fill="${isOurs ? '#1a7f5a' : '#8c959f'}"/>` +
        `<text x="${(LEFT + width + 8).toFixed(1)}" y="${y + 15}" fill="#1f2328">${shown(value)}${unit}</text>`
      );
    }),
  ].join('\n');
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
