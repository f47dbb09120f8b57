import { randomInt } from 'node:crypto';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { mutatedCopy, type Mutation, mutations } from '../test/faults/mutations.js';
import { markdown, writeBetweenMarkers } from '../test/faults/report.js';
import { type Result, Runner, type Scenario } from '../test/faults/runner.js';
import { scenarios } from '../test/faults/scenarios/index.js';
import { projectRoot } from './setup/project-root.mjs';

const HELP = `npm run test:mutations -- [options]
  Takes each safeguard away, one at a time, on a copy of the built product: the scenario that watches it must go red, and hold without the change.
  --only TEXT       mutations whose name has this text
  --seed N          every choice comes from it; printed at each run
  --root DIR        the built product; this project where not given
  --no-page         leaves docs/reliability.md as it is`;

/** What should come true and does not is given up after this time. */
const PATIENCE_MS = 12_000;
const TRIES = 2;

interface Verdict {
  readonly mutation: Mutation;
  readonly red: boolean;
  readonly found: string;
}

const say = (line: string): void => void process.stdout.write(`${line}\n`);

async function runOne(root: string, scenario: Scenario, seed: number, patienceMs?: number): Promise<Result> {
  const quiet = () => undefined;
  const runner = new Runner({ root, seed, log: quiet, ...(patienceMs === undefined ? {} : { patienceMs }) });
  try {
    return await runner.run(scenario);
  } finally {
    await runner.close();
  }
}

/** Runs the watching scenario on a copy without the safeguard; chance may miss once. */
async function judge(root: string, mutation: Mutation, seed: number): Promise<Verdict> {
  const copy = mutatedCopy(root, mutation.patches);
  try {
    let found = '';
    for (let tries = 0; tries < TRIES; tries += 1) {
      const result = await runOne(copy.root, scenarioOf(mutation), seed + tries, PATIENCE_MS);
      const hit = result.broken.find((fault) => mutation.finds.test(fault));
      if (hit !== undefined) return { mutation, red: true, found: hit };
      found = result.broken[0] ?? 'nothing';
    }
    return { mutation, red: false, found };
  } finally {
    copy.remove();
  }
}

function scenarioOf({ scenario }: Mutation): Scenario {
  const found = scenarios.find(({ id }) => id === scenario);
  if (found === undefined) throw new Error(`there is no scenario ${scenario}`);
  return found;
}

/** The scenarios hold on the product as it is; else their red would prove nothing. */
async function checkUnchanged(root: string, chosen: readonly Mutation[], seed: number): Promise<string[]> {
  const watching = [...new Set(chosen.map(scenarioOf))];
  const runner = new Runner({ root, seed, log: say });
  const broken: string[] = [];
  try {
    for (const scenario of watching) {
      const result = await runner.run(scenario);
      say(`unchanged, ${scenario.id}: ${result.broken.length === 0 ? 'holds' : 'BROKEN'}`);
      for (const fault of result.broken) say(`    ${fault}`);
      if (result.broken.length > 0) broken.push(scenario.id);
    }
  } finally {
    await runner.close();
  }
  return broken;
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      only: { type: 'string' },
      seed: { type: 'string' },
      root: { type: 'string' },
      'no-page': { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help === true) {
    say(HELP);
    return 0;
  }
  const { only = '', root = projectRoot } = values;
  const seed = values.seed === undefined ? randomInt(2 ** 31) : Number(values.seed);
  if (!Number.isFinite(seed)) throw new Error('--seed is a number');
  say(`seed ${seed}`);
  const chosen = mutations.filter(({ name }) => name.includes(only));
  if (chosen.length === 0) throw new Error(`no mutation has "${only}" in its name`);
  const broken = await checkUnchanged(root, chosen, seed);
  const verdicts: Verdict[] = [];
  for (const mutation of chosen) {
    const verdict = await judge(root, mutation, seed);
    verdicts.push(verdict);
    say(`${verdict.red ? 'red' : 'NOT RED'}: ${mutation.name} (${mutation.scenario}: ${verdict.found})`);
  }
  const rows = verdicts.map(({ mutation, red, found }) => [
    mutation.name,
    mutation.scenario,
    red ? 'red' : 'NOT RED',
    shortened(found),
  ]);
  const shown = markdown(['safeguard taken away', 'scenario', 'result', 'what it found'], rows);
  say(`\n${shown}`);
  if (only === '' && values['no-page'] !== true) {
    const facts = `Run of ${new Date().toISOString().slice(0, 10)}, seed ${seed}, ${cpus().length} cores. Unchanged, every one of these scenarios holds.`;
    writeBetweenMarkers(join(root, 'docs/reliability.md'), 'mutations', `${facts}\n\n${shown}`);
  }
  const missed = verdicts.filter(({ red }) => !red).length;
  say(
    `\n${verdicts.length - missed} of ${verdicts.length} mutations went red; unchanged, ${broken.length} scenarios broken`,
  );
  return missed === 0 && broken.length === 0 ? 0 : 1;
}

function shortened(text: string): string {
  const [line = ''] = text.replace(/^voucher \d+: /, '').split('\n');
  return line.length > 160 ? `${line.slice(0, 160)}...` : line;
}

// What was started is ended when this process exits.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130));

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    process.exit(1);
  },
);
