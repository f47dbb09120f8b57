import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { cpus } from 'node:os';
import { projectRoot } from './setup/project-root.mjs';
import { table, writeBetweenMarkers } from '../test/faults/report.js';
import { type Result, Runner } from '../test/faults/runner.js';
import { scenarios } from '../test/faults/scenarios/index.js';

const HELP = `npm run test:faults -- [options]
  Runs every fault scenario against real processes and checks what both stores hold afterwards.
  --only F5,F15     these scenarios only
  --seed N          every choice comes from it; printed at each run
  --minutes M       the random walk over all scenarios, for so long
  --times N         each scenario so many times, with seeds N apart
  --root DIR        the product under test (its package.json and dist); this project where not given
  --no-page         leaves docs/reliability.md as it is`;

interface Options {
  readonly only: readonly string[] | undefined;
  readonly seed: number;
  readonly times: number;
  readonly minutes: number | undefined;
  readonly root: string;
  readonly page: boolean;
}

function readOptions(): Options | undefined {
  const { values } = parseArgs({
    options: {
      only: { type: 'string' },
      seed: { type: 'string' },
      minutes: { type: 'string' },
      times: { type: 'string' },
      root: { type: 'string' },
      'no-page': { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help === true) return undefined;
  const seed = values.seed === undefined ? randomInt(2 ** 31) : Number(values.seed);
  const minutes = values.minutes === undefined ? undefined : Number(values.minutes);
  const times = values.times === undefined ? 1 : Number(values.times);
  if (![seed, times, minutes ?? 1].every((number) => Number.isFinite(number) && number >= 0))
    throw new Error('--seed, --minutes and --times are numbers');
  return {
    only: values.only?.split(','),
    seed,
    times,
    minutes,
    root: values.root ?? projectRoot,
    page: values['no-page'] !== true,
  };
}

const say = (line: string): void => void process.stdout.write(`${line}\n`);

function tell(result: Result): void {
  const seconds = (result.tookMs / 1000).toFixed(1);
  if (result.skipped !== undefined) return say(`${result.id}: skipped, ${result.skipped}`);
  const { accepted, stored, rejected, unknown, recoveryMs = '-' } = result;
  const counts = `accepted ${accepted}, stored ${stored}, rejected ${rejected}, unknown ${unknown}, recovery ${recoveryMs} ms`;
  say(
    `${result.id}: ${result.broken.length === 0 ? 'holds' : 'BROKEN'} (${counts}; ${seconds} s) ${result.notes.join(', ')}`,
  );
  for (const fault of result.broken) say(`    ${fault}`);
}

async function main(): Promise<number> {
  const options = readOptions();
  if (options === undefined) {
    say(HELP);
    return 0;
  }
  const { seed, only, root, times } = options;
  say(`seed ${seed}`);
  const chosen = scenarios.filter(({ id }) => only === undefined || only.includes(id));
  if (chosen.length === 0) throw new Error(`no scenario of ${only?.join(',')}`);
  const results: Result[] = [];
  for (let time = 0; time < times; time += 1) {
    const runner = new Runner({ root, seed: seed + time, log: say });
    try {
      for (const scenario of chosen) {
        const result = await runner.run(scenario);
        results.push(result);
        tell(result);
      }
    } finally {
      await runner.close();
    }
  }
  say(`\n${table(results)}`);
  const broken = results.filter((result) => result.broken.length > 0);
  if (only === undefined && options.page) {
    const facts = `Run of ${new Date().toISOString().slice(0, 10)}, seed ${seed}, ${cpus().length} cores, Node ${process.version}.`;
    writeBetweenMarkers(join(root, 'docs/reliability.md'), 'faults', `${facts}\n\n${table(results)}`);
  }
  say(`\n${results.length - broken.length} hold or are skipped, ${broken.length} broken; seed ${seed}`);
  return broken.length === 0 ? 0 : 1;
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(1);
  },
);
