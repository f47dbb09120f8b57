import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';

interface Row {
  readonly means: string;
  readonly scenario: string;
  readonly accepted: number;
  readonly delivered: number;
  readonly lost: number;
  readonly orderKept: boolean;
}

const ORDERS = 1500;
const lab = join(import.meta.dirname, '../../dist/scripts/lab.js');
let rows: Row[];

beforeAll(async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [
    lab,
    '--json',
    '--orders',
    String(ORDERS),
    '--away-ms',
    '300',
  ]);
  rows = JSON.parse(stdout) as Row[];
}, 180_000);

const lost = (means: string, scenario: string): number | undefined =>
  rows.find((row) => row.means === means && row.scenario === scenario)?.lost;

describe('the laboratory: what each queue loses', () => {
  it('accepts every order in every run, and under steady load every queue delivers all of them in order', () => {
    expect(rows).toHaveLength(25);
    for (const row of rows) expect(row.accepted, `${row.means}, ${row.scenario}`).toBe(ORDERS);
    for (const row of rows.filter(({ scenario }) => scenario === 'steady')) {
      expect(row).toMatchObject({ delivered: ORDERS, lost: 0, orderKept: true });
    }
  });

  it('loses nothing with a stream or a reliable list, whatever is killed', () => {
    for (const row of rows.filter(({ means }) => means === 'stream' || means === 'reliable list')) {
      expect(row.lost, `${row.means}, ${row.scenario}`).toBe(0);
    }
  });

  it('loses the order in hand with a plain list when its consumer dies, and only that', () => {
    expect(lost('list', 'consumer killed')).toBe(1);
    expect(lost('list', 'consumer away')).toBe(0);
    expect(lost('list', 'producer killed')).toBe(0);
  });

  it('loses with pub/sub whatever is published while nobody listens', () => {
    expect(lost('pub/sub', 'consumer away')).toBeGreaterThan(0);
    expect(lost('pub/sub', 'consumer killed')).toBeGreaterThan(0);
  });

  it('loses what waits in the process with an in-process queue when the process dies', () => {
    expect(lost('memory', 'consumer killed')).toBeGreaterThan(0);
    expect(lost('memory', 'producer killed')).toBeGreaterThan(0);
    expect(lost('memory', 'Redis killed')).toBe(0);
  });
});
