/**
 * Work that many ask for at once. Each asker gets the result of a turn that began after he asked; one turn runs at any time, and all who ask
 * meanwhile share the next one.
 */
export class SharedTurn<T> {
  private running: Promise<T> | undefined;
  private next: Promise<T> | undefined;

  constructor(private readonly work: () => Promise<T>) {}

  /** Rejects as the work of its turn does. */
  ask(): Promise<T> {
    if (this.next !== undefined) return this.next;
    if (this.running === undefined) return this.begin();
    const begin = (): Promise<T> => this.begin();
    return (this.next = this.running.then(begin, begin));
  }

  private begin(): Promise<T> {
    this.next = undefined;
    this.running = this.work().finally(() => (this.running = undefined));
    return this.running;
  }
}
