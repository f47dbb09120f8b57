import { expect, it } from 'vitest';
import { RepeatedLog } from './repeated-log.js';

it('says a lasting trouble a few times a minute, however often it comes, and counts what it held back', () => {
  const lines: string[] = [];
  const log = new RepeatedLog((line) => lines.push(line));
  for (let ms = 0; ms < 60_000; ms += 10) log.note(`trouble ${ms % 3 === 0 ? 'of one kind' : 'of another kind'}`, ms);
  expect(lines.length).toBeLessThanOrEqual(60);
  const same: string[] = [];
  const repeated = new RepeatedLog((line) => same.push(line));
  for (let ms = 0; ms < 60_000; ms += 10) repeated.note('trouble', ms);
  expect(same).toEqual(['trouble', ...Array.from({ length: 5 }, () => 'trouble (999 more lines held back)')]);
});

it('says the same trouble at once where it had been over in between', () => {
  const lines: string[] = [];
  const log = new RepeatedLog((line) => lines.push(line));
  log.note('trouble', 0);
  log.over();
  log.note('trouble', 1_500);
  expect(lines).toEqual(['trouble', 'trouble']);
});
