import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const root = join(import.meta.dirname, '../..');

/** Runs scenarios of the harness against the built product, in processes of their own. */
function faults(...args: string[]): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      ['dist/scripts/faults.js', '--no-page', ...args],
      { cwd: root },
      (error, stdout, stderr) =>
        resolve({
          code: typeof error?.code === 'number' ? error.code : error === null ? 0 : 1,
          output: stdout + stderr,
        }),
    );
  });
}

it.each([
  ['F1', 'an API process killed between the decision and its answer: a retry names the same order, nothing is lost'],
  ['F15', 'FLUSHALL in mid-sale: closed, rebuilt, opened; nothing is sold twice'],
  ['F19', 'a consumer killed after its commit and before its acknowledgement: nothing is stored twice'],
  ['F20', 'a consumer killed with entries in hand: a living one finishes them'],
])('%s holds: %s', { timeout: 240_000 }, async (id) => {
  const { code, output } = await faults('--only', id);
  expect(output, output).toContain(`${id}: holds`);
  expect(code, output).toBe(0);
});
