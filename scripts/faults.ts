import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { cpus } from 'node:os';
import { projectRoot } from './setup/project-root.mjs';
import { randomWalk, summary } from '../test/faults/random-walk.js';
import { table, writeBetweenMarkers } from '../test/faults/report.js';
import { type Result, Runner, type Scenario } from '../test/faults/runner.js';
import { scenarios } from '../test/faults/scenarios/index.js';

const HELP = `npm run test:faults -- [options]
  Runs every fault scenario against real processes and checks what both stores hold afterwards.
  --only F5,F15     these scenarios only
  --seed N          every choice comes from it; printed at each run
  --minutes M       only the random walk over all kinds of harm, for so long
  --round K         only this round of the walk
  --times N         each scenario so many times, with seeds N apart
  --root DIR        the product under test (its package.json and dist); this project where not given
  --no-page         leaves docs/reliability.md as it is`;

interface Options {
  readonly only: readonly string[] | undefined;
  readonly seed: number;
  readonly times: number;
  readonly minutes: number | undefined;
  readonly round: number | undefined;
  readonly root: string;
  readonly page: boolean;
}

function readOptions(): Options | undefined {
  const { values } = parseArgs({
    options: {
      only: { type: 'string' },
      seed: { type: 'string' },
      minutes: { type: 'string' },
      round: { type: 'string' },
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
  const round = values.round === undefined ? undefined : Number(values.round);
  if (![seed, times, minutes ?? 1, round ?? 1].every((number) => Number.isFinite(number) && number >= 0))
    throw new Error('--seed, --minutes, --round and --times are numbers');
  return {
    only: values.only?.split(','),
    seed,
    times,
    minutes,
    round,
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
  say(`seed ${options.seed}`);
  const results = [...(await runScenarios(options)), ...(await walk(options))];
  say(`\n${table(results)}`);
  const broken = results.filter((result) => result.broken.length > 0);
  if (isWhole(options) && options.page) writePage(options, results);
  say(`\n${results.length - broken.length} hold or are skipped, ${broken.length} broken; seed ${options.seed}`);
  return broken.length === 0 ? 0 : 1;
}

const walksOnly = ({ minutes, round }: Options): boolean => minutes !== undefined || round !== undefined;
const isWhole = (options: Options): boolean => options.only === undefined && !walksOnly(options);

async function runScenarios(options: Options): Promise<Result[]> {
  const { seed, only, root, times } = options;
  if (walksOnly(options)) return [];
  const chosen = scenarios.filter(({ id }) => only === undefined || only.includes(id));
  if (chosen.length === 0 && only?.includes('F43') !== true) throw new Error(`no scenario of ${only?.join(',')}`);
  const results: Result[] = [];
  for (let time = 0; time < times; time += 1) {
    const runner = new Runner({ root, seed: seed + time, log: say });
    try {
      for (const scenario of byWorld(chosen)) {
        const result = await runner.run(scenario);
        results.push(result);
        tell(result);
      }
    } finally {
      await runner.close();
    }
  }
  const place = (result: Result) => chosen.findIndex(({ id }) => id === result.id);
  return results.sort((one, other) => place(one) - place(other));
}

/** Those that can share a world follow one another: a world takes seconds to start. */
function byWorld(chosen: readonly Scenario[]): Scenario[] {
  const worlds = new Map<string, Scenario[]>();
  for (const scenario of chosen) {
    const key = JSON.stringify(scenario.needs ?? {});
    worlds.set(key, [...(worlds.get(key) ?? []), scenario]);
  }
  return [...worlds.values()].flat();
}

async function walk(options: Options): Promise<Result[]> {
  const { seed, root, minutes = 1, round, only } = options;
  if (only !== undefined && !only.includes('F43')) return [];
  const rounds = await randomWalk({
    root,
    seed,
    minutes,
    log: say,
    tell,
    ...(round === undefined ? {} : { onlyRound: round }),
  });
  return [summary(rounds, minutes)];
}

function writePage({ root, seed }: Options, results: readonly Result[]): void {
  const facts = `Run of ${new Date().toISOString().slice(0, 10)}, seed ${seed}, ${cpus().length} cores, Node ${process.version}.`;
  writeBetweenMarkers(join(root, 'docs/reliability.md'), 'faults', `${facts}\n\n${table(results)}`);
}

// What was started is ended when this process exits.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130));

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(1);
  },
);
