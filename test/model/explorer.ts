/**
 * One atomic step of a model. `fault` marks what the outside does (a crash, a loss, an operator's hand): faults may happen,
 * but no promise may depend on them happening.
 */
export interface Step<State> {
  readonly label: string;
  readonly next: State;
  readonly fault?: boolean;
}

/** A finite transition system, and what must hold in it. States are never changed once handed out. */
export interface Model<State> {
  readonly initial: State;
  /** Every step that is possible in the state, in a fixed order. */
  steps(state: State): Step<State>[];
  /** Equal for two states exactly where they need not be told apart (renamed ids, swapped buyers). */
  encode(state: State): string;
  /** Safety: for each property undefined where the state keeps it, else what is broken in it. */
  readonly properties: Readonly<Record<string, (state: State) => string | undefined>>;
  /** Liveness: from every reachable state, steps that are no faults must be able to lead to a state that is settled. */
  readonly settled: { readonly property: string; holds(state: State): boolean };
  /** One line that shows a state in a trace. */
  describe(state: State): string;
}

export interface Violation {
  readonly property: string;
  readonly detail: string;
  /** The labels of a shortest way from the initial state to the broken one. */
  readonly trace: readonly string[];
  /** The trace with the state after each step, for people. */
  readonly text: string;
}

export interface Exploration {
  readonly states: number;
  readonly transitions: number;
  /** Steps from the initial state to the farthest one. */
  readonly depth: number;
  readonly violation?: Violation;
}

/** More states than the limit were reached: the configuration is too large, nothing was proved. */
export class StateLimitExceeded extends Error {
  readonly code = 'STATE_LIMIT_EXCEEDED';
}

/**
 * Visits every reachable state, nearest first, and stops at the first one that breaks a property: so a trace is a shortest one.
 * Where none breaks, it looks (backwards from the settled states) for a state that can no longer settle.
 * @throws StateLimitExceeded where more than `maxStates` states are reachable
 */
export function explore<State>(model: Model<State>, maxStates = 400_000): Exploration {
  return new Explorer(model, maxStates).run();
}

class Explorer<State> {
  private readonly indexOf = new Map<string, number>();
  /** States not yet looked at; those behind are forgotten, and made again for a trace. */
  private readonly queue: (State | undefined)[] = [];
  private readonly parent: number[] = [];
  private readonly label: string[] = [];
  private readonly depthOf: number[] = [];
  private readonly settledStates: number[] = [];
  /** For each step that is no fault: where it leads, and where it comes from. */
  private readonly edgeTo: number[] = [];
  private readonly edgeFrom: number[] = [];
  private readonly checks: [string, (state: State) => string | undefined][];
  private transitions = 0;

  constructor(
    private readonly model: Model<State>,
    private readonly maxStates: number,
  ) {
    this.checks = Object.entries(model.properties);
  }

  run(): Exploration {
    this.reach(this.model.initial, -1, '');
    for (let index = 0; index < this.queue.length; index += 1) {
      const state = this.queue[index] as State;
      this.queue[index] = undefined;
      const broken = this.firstBroken(state);
      if (broken !== undefined) return this.report(index, broken.property, broken.detail);
      if (this.model.settled.holds(state)) this.settledStates.push(index);
      for (const step of this.model.steps(state)) this.follow(index, step);
    }
    const stuck = this.firstThatCannotSettle();
    if (stuck === undefined) return this.figures();
    return this.report(stuck, this.model.settled.property, 'no way leads from here to a settled state');
  }

  private follow(from: number, step: Step<State>): void {
    this.transitions += 1;
    const to = this.reach(step.next, from, step.label);
    if (step.fault === true || to === from) return;
    this.edgeTo.push(to);
    this.edgeFrom.push(from);
  }

  private reach(state: State, parent: number, label: string): number {
    const code = this.model.encode(state);
    const known = this.indexOf.get(code);
    if (known !== undefined) return known;
    const index = this.queue.length;
    if (index >= this.maxStates) throw new StateLimitExceeded(`more than ${this.maxStates} states`);
    this.indexOf.set(code, index);
    this.queue.push(state);
    this.parent.push(parent);
    this.label.push(label);
    this.depthOf.push(parent < 0 ? 0 : (this.depthOf[parent] as number) + 1);
    return index;
  }

  private firstBroken(state: State): { property: string; detail: string } | undefined {
    for (const [property, check] of this.checks) {
      const detail = check(state);
      if (detail !== undefined) return { property, detail };
    }
    return undefined;
  }

  /** The nearest state from which no settled one can be reached by steps that are no faults. */
  private firstThatCannotSettle(): number | undefined {
    const count = this.queue.length;
    // Edges grouped by their target (counting sort): `start[t]..start[t + 1]` are the places of the edges into t.
    const start = new Int32Array(count + 1);
    for (const to of this.edgeTo) start[to + 1] = (start[to + 1] as number) + 1;
    for (let index = 0; index < count; index += 1)
      start[index + 1] = (start[index + 1] as number) + (start[index] as number);
    const place = start.slice();
    const sources = new Int32Array(this.edgeTo.length);
    this.edgeTo.forEach((to, edge) => {
      sources[place[to] as number] = this.edgeFrom[edge] as number;
      place[to] = (place[to] as number) + 1;
    });
    const canSettle = new Uint8Array(count);
    const work = [...this.settledStates];
    for (const index of work) canSettle[index] = 1;
    for (let to = work.pop(); to !== undefined; to = work.pop()) {
      for (let edge = start[to] as number; edge < (start[to + 1] as number); edge += 1) {
        const from = sources[edge] as number;
        if (canSettle[from] === 1) continue;
        canSettle[from] = 1;
        work.push(from);
      }
    }
    const stuck = canSettle.indexOf(0);
    return stuck < 0 ? undefined : stuck;
  }

  private figures(): { states: number; transitions: number; depth: number } {
    return {
      states: this.queue.length,
      transitions: this.transitions,
      depth: this.depthOf[this.depthOf.length - 1] ?? 0,
    };
  }

  private report(index: number, property: string, detail: string): Exploration {
    const path: number[] = [];
    for (let at = index; at >= 0; at = this.parent[at] as number) path.unshift(at);
    const trace = path.slice(1).map((at) => this.label[at] as string);
    const text = [`${property} is broken: ${detail}`, ...this.replay(path)].join('\n');
    return { ...this.figures(), violation: { property, detail, trace, text } };
  }

  /** Walks the path again, from the initial state, and tells each state on the way. */
  private replay(path: readonly number[]): string[] {
    let state = this.model.initial;
    return path.map((at, count) => {
      const label = this.label[at] as string;
      if (count > 0) {
        const same = (step: Step<State>) =>
          step.label === label && this.indexOf.get(this.model.encode(step.next)) === at;
        state = (this.model.steps(state).find(same) as Step<State>).next;
      }
      return `${String(count).padStart(3)}. ${count === 0 ? 'start' : label}\n       ${this.model.describe(state)}`;
    });
  }
}
