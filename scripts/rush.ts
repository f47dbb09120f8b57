import 'reflect-metadata';
import { writeFileSync } from 'node:fs';
import { parseRushOptions, USAGE } from './rush/options.js';
import { reportJson, reportLines } from './rush/report.js';
import { runRush } from './rush/rush-run.js';
import { NoTargetError, openTarget } from './rush/rush-target.js';
import { exitCodeOf } from './rush/verdict.js';
import { listenForStop } from './services/stop-request.mjs';
import { StartFailure, tellFailure } from './setup/start-failure.mjs';

/**
 * `npm run rush`: a crowd at a sale, ending in a verdict on the promises. Exit code 0: all that could be looked at are kept, 1: one is broken,
 * 2: it could not run, 130: it was interrupted.
 */
async function main(): Promise<number> {
  const parsed = parseRushOptions(process.argv.slice(2));
  if (parsed.kind === 'HELP') {
    process.stdout.write(USAGE);
    return 0;
  }
  if (parsed.kind === 'BAD') {
    process.stderr.write(`${parsed.problems.join('\n')}\n\n${USAGE}`);
    return 2;
  }
  const { options } = parsed;
  const { signal } = listenForStop({ onForce: () => process.exit(130) });
  let target;
  try {
    target = await openTarget(options, signal);
    const result = await runRush(options, target, { signal, out: process.stderr });
    const colour = process.stdout.isTTY && process.env['NO_COLOR'] === undefined;
    for (const line of reportLines(result, { quiet: options.quiet, colour })) process.stdout.write(`${line}\n`);
    if (options.jsonFile !== undefined)
      writeFileSync(options.jsonFile, `${JSON.stringify(reportJson(result), undefined, 2)}\n`);
    return exitCodeOf(result.promises);
  } catch (error) {
    if (signal.aborted) return 130;
    if (error instanceof StartFailure)
      process.stderr.write(`${tellFailure(error, 'npm run rush', process.env['LOG_LEVEL'])}\n`);
    else if (error instanceof NoTargetError) process.stderr.write(`✗ ${error.message}\n`);
    else throw error;
    return 2;
  } finally {
    await target?.stop();
  }
}

// What is still open (a connection that does not close) must not keep the command from ending.
process.exit(await main());
