import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';

const root = join(import.meta.dirname, '../..');

const selection = [
  ['F1', 'an API process killed between the decision and its answer: a retry names the same order, nothing is lost'],
  ['F15', 'Redis emptied in mid-sale: closed, rebuilt, opened; nothing is sold twice'],
  ['F19', 'a consumer killed after its commit and before its acknowledgement: nothing is stored twice'],
  ['F20', 'a consumer killed with entries in hand: a living one finishes them'],
] as const;

/** Runs the harness against the built product, in a process of its own. */
function harness(script: 'faults' | 'mutations', ...args: string[]): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    const command = [`dist/scripts/${script}.js`, '--no-page', ...args];
    execFile(process.execPath, command, { cwd: root, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), output: stdout + stderr }),
    );
  });
}

describe('a selection of the faults, all in one run', () => {
  let run: { code: number; output: string };
  beforeAll(async () => {
    run = await harness('faults', '--only', selection.map(([id]) => id).join(','));
  }, 400_000);

  it.each(selection)('%s: %s', (id) => {
    expect(run.output, run.output).toContain(`${id}: holds`);
    expect(run.code, run.output).toBe(0);
  });
});

it('the harness goes red where a safeguard is taken away', { timeout: 240_000 }, async () => {
  const { code, output } = await harness('mutations', '--only', 'one order per buyer');
  expect(output, output).toContain('1 of 1 mutations went red; unchanged, 0 scenarios broken');
  expect(code, output).toBe(0);
});
