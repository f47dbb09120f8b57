import type { History } from './history.js';
import type { LinkedNode } from './world.js';

interface Snapshot {
  readonly starts: number;
  readonly values: ReadonlyMap<string, number>;
}

const OUTCOMES = { ACCEPTED: 'QUEUED', SOLD_OUT: 'SOLD_OUT', DUPLICATE: 'DUPLICATE_ORDER' } as const;

/** Holds the processes' own counters against what the clients heard (I10). */
export class MetricsCheck {
  private constructor(private readonly before: ReadonlyMap<LinkedNode, Snapshot>) {}

  static async begin(nodes: readonly LinkedNode[]): Promise<MetricsCheck> {
    const before = new Map<LinkedNode, Snapshot>();
    for (const linked of nodes) before.set(linked, { starts: linked.node.starts, values: await linked.node.metrics() });
    return new MetricsCheck(before);
  }

  /** What differs. Counters begin anew with their process: where one was restarted, nothing can be said. */
  async differences(history: History): Promise<string[]> {
    const nodes = [...this.before.keys()];
    if (nodes.some((linked) => linked.node.starts !== this.before.get(linked)?.starts)) return [];
    const after = new Map<LinkedNode, ReadonlyMap<string, number>>();
    for (const linked of nodes) after.set(linked, await linked.node.metrics());
    const grown = (name: string) =>
      nodes.reduce((sum, each) => {
        const former = this.before.get(each)?.values.get(name) ?? 0;
        return sum + (after.get(each)?.get(name) ?? 0) - former;
      }, 0);
    const unheard = history.count(({ code }) => code.startsWith('NO_ANSWER'));
    return Object.entries(OUTCOMES).flatMap(([outcome, code]) => {
      const counted = grown(`seckill_admissions_total{outcome="${outcome}"}`);
      const heard = history.count((call) => call.code === code);
      if (counted >= heard && counted <= heard + unheard) return [];
      return [
        `I10 the metrics count ${counted} ${outcome}, clients heard ${heard} (${unheard} calls without an answer)`,
      ];
    });
  }
}
