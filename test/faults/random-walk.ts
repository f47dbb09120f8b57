import { type Harm, harms } from './harms.js';
import type { Random } from './random.js';
import { type Result, Runner, type RunOptions, type Scenario } from './runner.js';
import type { Stage } from './stage.js';
import type { WorldNeeds } from './world.js';

/** Rounds in one world before another kind of world is tried. */
const ROUNDS_PER_WORLD = 8;
const LONGEST_HARM_MS = 3500;
const RECOVERY_LIMIT_MS = 60_000;

/** The kinds of worlds that the walk goes through. */
const WORLDS: readonly WorldNeeds[] = [
  {},
  { apisConsume: true, settings: { STREAM_PARTITIONS: '3' } },
  { replica: true, settings: { ADMISSION_DURABILITY: 'replica' } },
  { settings: { CONSUMER_BATCH_SIZE: '20', MAX_IN_FLIGHT: '60', MAX_BACKLOG: '400' } },
];

/** One round: a sale, a crowd, and up to five harms that begin and end as chance has it, some of them at the same time. */
function round(number: number, needs: WorldNeeds): Scenario {
  return {
    id: `F43.${number}`,
    title: 'Random walk',
    needs,
    async run(stage) {
      const rush = stage.rush({
        users: stage.random.between(600, 2000),
        thinkMs: stage.random.between(100, 1500),
        tries: stage.random.between(1, 20),
        dropShare: stage.random.pick([0, 0, 0, 0.2]),
      });
      const active = new Set<string>();
      const count = stage.random.between(1, 5);
      const fitting = harms.filter((harm) => harm.needs === undefined || needs[harm.needs] === true);
      const chosen = Array.from({ length: count }, (_, nth) => ({
        harm: stage.random.pick(fitting),
        random: stage.random.derive(`harm ${nth}`),
      }));
      await Promise.all(chosen.map(({ harm, random }) => doHarm(stage, harm, random, active)));
      await stage.world.heal();
      await stage.recovered(RECOVERY_LIMIT_MS);
      await rush.done;
    },
  };
}

async function doHarm(stage: Stage, harm: Harm, random: Random, active: Set<string>): Promise<void> {
  await stage.lasts(random.between(0, 2000));
  if (active.has(harm.target)) return;
  active.add(harm.target);
  const lastsMs = random.between(50, LONGEST_HARM_MS);
  stage.notes.push(`${harm.name} ${lastsMs} ms`);
  try {
    const end = await harm.begin(stage, random);
    await stage.lasts(lastsMs);
    await end();
  } catch (error) {
    // Another harm may have taken away what this one acts on; what counts is the state after healing.
    stage.notes.push(`${harm.name} met: ${error instanceof Error ? error.message.slice(0, 80) : String(error)}`);
  } finally {
    active.delete(harm.target);
  }
}

export interface WalkOptions extends RunOptions {
  readonly minutes: number;
  /** Only this round. */
  readonly onlyRound?: number;
  readonly tell: (result: Result) => void;
}

/** Walks until the time is up. Round n makes the same choices for the same seed, alone or in line. */
export async function randomWalk(options: WalkOptions): Promise<Result[]> {
  const { minutes, onlyRound, tell } = options;
  const results: Result[] = [];
  const runner = new Runner(options);
  const endMs = performance.now() + minutes * 60_000;
  try {
    for (let number = onlyRound ?? 1; ; number += 1) {
      const needs = WORLDS[Math.floor((number - 1) / ROUNDS_PER_WORLD) % WORLDS.length] as WorldNeeds;
      const result = await runner.run(round(number, needs));
      results.push(result);
      tell(result);
      if (onlyRound !== undefined || performance.now() >= endMs) return results;
    }
  } finally {
    await runner.close();
  }
}

/** The walk as one line of the table. */
export function summary(results: readonly Result[], minutes: number): Result {
  const sum = (value: (result: Result) => number) => results.reduce((total, result) => total + value(result), 0);
  return {
    id: 'F43',
    title: `Random walk of ${minutes} min over all of them, ${results.length} rounds`,
    skipped: undefined,
    accepted: sum(({ accepted }) => accepted),
    stored: sum(({ stored }) => stored),
    rejected: sum(({ rejected }) => rejected),
    unknown: sum(({ unknown }) => unknown),
    recoveryMs: Math.max(0, ...results.map(({ recoveryMs }) => recoveryMs ?? 0)),
    tookMs: sum(({ tookMs }) => tookMs),
    broken: results.flatMap(({ id, broken }) => broken.map((fault) => `${id}: ${fault}`)),
    notes: [],
  };
}
