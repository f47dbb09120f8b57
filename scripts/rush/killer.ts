import type { Product } from '../services/product.mjs';

/** How soon a kill that is due follows once somebody is up again. */
const LOOK_INTERVAL_MS = 50;

/**
 * Kills one process of ours at each due time: of those that are up, whoever was killed the longest ago; where none of them may be killed, a worker that is
 * still starting. Only the last API process that is up is spared until another is back, and API processes while they start: a crowd that meets nobody
 * proves nothing. Where nobody may be killed when a kill is due, it comes as soon as somebody may.
 */
export class Killer {
  private timer: NodeJS.Timeout | undefined;
  private dueMs = 0;
  /** By name: its place in the order of kills. */
  private readonly killed = new Map<string, number>();
  /** Processes killed so far. */
  kills = 0;

  constructor(
    private readonly product: Pick<Product, 'processes'>,
    private readonly everyMs: number,
    private readonly kill: (pid: number) => void = (pid) => void process.kill(pid, 'SIGKILL'),
  ) {}

  start(): void {
    this.dueMs = performance.now() + this.everyMs;
    this.timer ??= setInterval(() => this.look(performance.now()), Math.min(LOOK_INTERVAL_MS, this.everyMs));
  }

  stop(): void {
    clearInterval(this.timer);
  }

  /** Kills one if a kill is due at this time and somebody may be killed. */
  look(nowMs: number): void {
    if (nowMs < this.dueMs) return;
    const all = this.product.processes();
    const apis = all.filter(({ name, isUp }) => isUp && API.test(name));
    const candidates = [...(apis.length > 1 ? apis : []), ...all.filter(({ name }) => WORKER.test(name))];
    const [victim] = candidates.sort(
      (one, other) =>
        Number(other.isUp) - Number(one.isUp) || (this.killed.get(one.name) ?? 0) - (this.killed.get(other.name) ?? 0),
    );
    if (victim === undefined) return;
    this.kill(victim.pid);
    this.kills += 1;
    this.killed.set(victim.name, this.kills);
    this.dueMs = nowMs + this.everyMs;
  }
}

/** The names of our processes; the others are the stores. */
const API = /API process/;
const WORKER = /^worker/;
