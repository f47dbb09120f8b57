import type { LoadResult } from './load.js';
import type { Stage } from './stage.js';

/** Processes by the name under which their CPU is shown. */
export type Watched = Readonly<Record<string, number>>;

/** One measurement of one thing in one round. */
export interface Sample {
  readonly operations: number;
  readonly wallMs: number;
  /** CPU microseconds per operation, by process; `generator` is the bench itself. */
  readonly cpuUs: Readonly<Record<string, number>>;
  readonly p99Ms?: number;
}

/** Reads the CPU of the watched processes; call the answer at the end. */
export function startCpu(stage: Stage, watched: Watched): () => Record<string, number> {
  const read = (): [string, number][] => Object.entries(watched).map(([name, pid]) => [name, stage.cpu.readUs([pid])]);
  const before = Object.fromEntries(read());
  return () => Object.fromEntries(read().map(([name, us]) => [name, us - (before[name] as number)]));
}

/** How many of the answers had the status that was to be expected; fails where more than one in a hundred had another. */
export function answersWith(status: number, load: LoadResult, what: string): number {
  const count = load.byStatus.get(status) ?? 0;
  if (count >= load.sent * 0.99) return count;
  const heard = [...load.byStatus].map(([code, times]) => `${times} x ${code}`).join(', ');
  throw new Error(`${what}: ${load.sent} requests were answered ${heard}; ${status} was expected`);
}

export function sampleOf(
  operations: number,
  wallMs: number,
  cpuUs: Readonly<Record<string, number>>,
  load?: LoadResult,
): Sample {
  const all = load === undefined ? cpuUs : { ...cpuUs, generator: load.generatorUs };
  return {
    operations,
    wallMs,
    cpuUs: Object.fromEntries(Object.entries(all).map(([name, us]) => [name, us / operations])),
    ...(load === undefined ? {} : { p99Ms: load.latency.quantileUs(0.99) / 1_000 }),
  };
}

export const perSecond = ({ operations, wallMs }: Sample): number => (operations * 1_000) / wallMs;

/** CPU per operation of all processes but the generator. */
export function wholeCpuUs({ cpuUs }: Sample): number {
  return Object.entries(cpuUs).reduce((sum, [name, us]) => (name === 'generator' ? sum : sum + us), 0);
}
