/** What a probe found, or why it found nothing. */
export type Reading<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly reason: string };

/**
 * A question to a dependency that many callers ask at once: there is one question on its way at any time, each caller waits for its answer for at
 * most `limitMs`, and a good answer younger than `maxAgeMs` is given again. `read` never rejects.
 */
export class SharedProbe<T> {
  private running: Promise<Reading<T>> | undefined;
  private recent: { readonly reading: Reading<T>; readonly atMs: number } | undefined;

  constructor(
    private readonly ask: () => Promise<T>,
    private readonly limitMs: number,
    private readonly maxAgeMs = 0,
  ) {}

  async read(): Promise<Reading<T>> {
    if (this.recent !== undefined && performance.now() - this.recent.atMs < this.maxAgeMs) return this.recent.reading;
    this.running ??= this.run();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<Reading<T>>((resolve) => {
      timer = setTimeout(() => resolve({ ok: false, reason: `no answer within ${this.limitMs} ms` }), this.limitMs);
    });
    try {
      return await Promise.race([this.running, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  private async run(): Promise<Reading<T>> {
    const reading = await this.answer();
    if (reading.ok) this.recent = { reading, atMs: performance.now() };
    this.running = undefined;
    return reading;
  }

  private async answer(): Promise<Reading<T>> {
    try {
      return { ok: true, value: await this.ask() };
    } catch (error) {
      return { ok: false, reason: error instanceof Error ? error.message : String(error) };
    }
  }
}
