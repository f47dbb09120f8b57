import { Random } from './random.js';
import { Settlement } from './settlement.js';
import { Stage } from './stage.js';
import { World, type WorldNeeds } from './world.js';
import { isDeepStrictEqual } from 'node:util';

/** One kind of harm, done to a running sale. */
export interface Scenario {
  /** As in the list of faults: F5. */
  readonly id: string;
  readonly title: string;
  readonly needs?: WorldNeeds;
  readonly units?: number;
  /** Why it cannot run on this machine; undefined where it can. */
  readonly skipped?: () => string | undefined;
  /** Does the harm to the rush and ends it. When it resolves, all must be able to work again. */
  readonly run: (stage: Stage) => Promise<void>;
  /** The world is not fit for others afterwards. */
  readonly spoilsWorld?: boolean;
}

export interface Result {
  readonly id: string;
  readonly title: string;
  readonly skipped: string | undefined;
  readonly accepted: number;
  readonly stored: number;
  readonly rejected: number;
  readonly unknown: number;
  readonly recoveryMs: number | undefined;
  readonly tookMs: number;
  readonly broken: readonly string[];
  readonly notes: readonly string[];
}

export interface RunOptions {
  /** The folder with package.json and dist of the product under test. */
  readonly root: string;
  readonly seed: number;
  readonly log: (line: string) => void;
  /** How long anything is awaited that should come true: 90,000 where not given. */
  readonly patienceMs?: number;
}

const UNITS = 500;

/** Runs scenarios one after another; a world is used again while it is sound and its needs are the same. */
export class Runner {
  private world: World | undefined;

  constructor(private readonly options: RunOptions) {}

  async run(scenario: Scenario): Promise<Result> {
    const why = scenario.skipped?.();
    if (why !== undefined) return skippedResult(scenario, why);
    const startMs = performance.now();
    const random = new Random(this.options.seed).derive(scenario.id);
    const { needs = {}, units = UNITS } = scenario;
    let stage: Stage | undefined;
    let counts = { accepted: 0, stored: 0, rejected: 0, unknown: 0 };
    const broken: string[] = [];
    try {
      const world = await this.worldFor(needs);
      stage = new Stage(world, random, this.options.patienceMs);
      await stage.open(units);
      await scenario.run(stage);
      const settlement = new Settlement(stage);
      await settlement.settle();
      counts = await settlement.check();
    } catch (error) {
      broken.push(
        `the scenario did not come to its end: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
      );
    }
    stage?.close();
    broken.push(...new Set(stage?.broken ?? []));
    if (broken.length > 0 || scenario.spoilsWorld === true) await this.close(broken.length > 0);
    return {
      id: scenario.id,
      title: scenario.title,
      skipped: undefined,
      ...counts,
      recoveryMs: stage?.recoveryMs,
      tookMs: Math.round(performance.now() - startMs),
      broken,
      notes: stage?.notes ?? [],
    };
  }

  /** Ends the world; where something broke, the last words of its processes are shown. */
  async close(showWords = false): Promise<void> {
    const { world } = this;
    this.world = undefined;
    if (world === undefined) return;
    if (showWords)
      for (const { node } of world.nodes) this.options.log(`--- ${node.name}:\n${node.lastWords().slice(-1500)}`);
    await world.stop();
  }

  private async worldFor(needs: WorldNeeds): Promise<World> {
    if (this.world !== undefined && !isDeepStrictEqual(this.world.needs, needs)) await this.close();
    this.world ??= await World.start(this.options.root, needs);
    return this.world;
  }
}

function skippedResult({ id, title }: Scenario, skipped: string): Result {
  const nothing = { accepted: 0, stored: 0, rejected: 0, unknown: 0, recoveryMs: undefined, tookMs: 0 };
  return { id, title, skipped, ...nothing, broken: [], notes: [] };
}
