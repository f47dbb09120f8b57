import { AggregatorRegistry, register } from 'prom-client';
import type { Figures } from './fleet-messages.js';
import { silentProcesses } from './metrics.js';
import { SharedTurn } from './shared-turn.js';

/** A process that may be asked for its figures. */
export interface FiguresSource {
  readonly key: number;
  /** Sends the question; the answer comes by `FleetFigures.told`. */
  ask(id: number): void;
}

const ANSWER_WITHIN_MS = 1000;
const KEPT_APART = 8;

/**
 * The sum over all processes of a fleet. A process that does not answer in time is left out and counted; but its counts, and those of processes
 * that have ended, stay in the sum as they were last told: else the sum would fall, and a falling counter passes for one that began anew.
 */
export class FleetFigures {
  private readonly lastTold = new Map<number, Figures>();
  private ended: Figures[] = [];
  private round = 0;
  private waiting: { readonly keys: Set<number>; readonly done: () => void } | undefined;
  private readonly turn = new SharedTurn(() => this.collect());

  /** @param sources who lives now */
  constructor(
    private readonly sources: () => readonly FiguresSource[],
    private readonly limitMs = ANSWER_WITHIN_MS,
  ) {}

  /** The metrics of all processes as Prometheus text; resolves within the limit, two limits where a round is already running. */
  metrics(): Promise<string> {
    return this.turn.ask();
  }

  /** Takes an answer in. One that comes too late for its round is still the newest that is known. */
  told(key: number, id: number, figures: Figures): void {
    this.lastTold.set(key, figures);
    if (id === this.round) this.heard(key);
  }

  /** The process has ended: nothing more will come, and its counts stay. */
  gone(key: number): void {
    const last = this.lastTold.get(key);
    this.lastTold.delete(key);
    if (last !== undefined) this.ended.push(countsOf(last));
    this.heard(key);
  }

  private async collect(): Promise<string> {
    const sources = this.sources();
    const silent = await this.askAll(sources);
    silentProcesses.inc(silent.size);
    if (this.ended.length > KEPT_APART) await this.foldEnded();
    // The last step takes all figures in one go: a process that ends now is in exactly one of the two lists.
    const living = [...this.lastTold].map(([key, figures]) => (silent.has(key) ? countsOf(figures) : figures));
    const all = [...living, ...this.ended, finite(await register.getMetricsAsJSON())];
    return AggregatorRegistry.aggregate(all).metrics();
  }

  /** Asks, waits until each has answered or ended, or the limit has passed; who is missing. */
  private async askAll(sources: readonly FiguresSource[]): Promise<Set<number>> {
    const id = (this.round += 1);
    const keys = new Set(sources.map(({ key }) => key));
    if (keys.size === 0) return keys;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((done) => {
      this.waiting = { keys, done };
      timer = setTimeout(done, this.limitMs);
      for (const source of sources) source.ask(id);
    });
    clearTimeout(timer);
    this.waiting = undefined;
    return keys;
  }

  private heard(key: number): void {
    if (this.waiting?.keys.delete(key) === true && this.waiting.keys.size === 0) this.waiting.done();
  }

  private async foldEnded(): Promise<void> {
    const folded = this.ended;
    this.ended = [];
    this.ended.push(await AggregatorRegistry.aggregate(folded).getMetricsAsJSON());
  }
}

/** The figures that only grow: they outlive their process. */
function countsOf(figures: Figures): Figures {
  return figures.filter(({ type }) => ['counter', 'histogram'].includes(String(type)));
}

/** The channel carries JSON, which knows no NaN (the event-loop lag of no sample, say): such a value is no value. */
export function finite(figures: Figures): Figures {
  return figures.map((metric) => ({
    ...metric,
    values: metric.values.filter(({ value }) => Number.isFinite(value)),
  }));
}
