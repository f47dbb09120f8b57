import type { Product } from '../services/product.mjs';

/**
 * Kills the processes of ours in turn, one at a time. The last one of its kind that is up is spared until another has come back: a crowd that meets
 * nobody proves nothing.
 */
export class Killer {
  private timer: NodeJS.Timeout | undefined;
  private turn = 0;
  /** Processes killed so far. */
  kills = 0;

  constructor(
    private readonly product: Product,
    private readonly everyMs: number,
  ) {}

  start(): void {
    this.timer ??= setInterval(() => this.kill(), this.everyMs);
  }

  stop(): void {
    clearInterval(this.timer);
  }

  private kill(): void {
    const up = this.product.processes().filter(({ isUp }) => isUp);
    const kinds = [/API process/, /^worker/].map((kind) => up.filter(({ name }) => kind.test(name)));
    const candidates = kinds.flatMap((kind) => (kind.length > 1 ? kind : []));
    const victim = candidates[this.turn++ % Math.max(1, candidates.length)];
    if (victim === undefined) return;
    process.kill(victim.pid, 'SIGKILL');
    this.kills += 1;
  }
}
