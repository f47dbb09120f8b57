import type { LabOrder, OrderHandler, OrderQueue } from './order-queue.js';

/** As in the source text: 1024 x 1024 places. */
export const MEMORY_QUEUE_CAPACITY = 1024 * 1024;

/** A bounded first-in-first-out queue in this process. Refuses when full. Dies with the process, with everything in it. */
export class MemoryQueue implements OrderQueue {
  private readonly places: (LabOrder | undefined)[] = [];
  private head = 0;
  private wake: (() => void) | undefined;
  private closed = false;
  private worker: Promise<void> | undefined;

  constructor(private readonly capacity = MEMORY_QUEUE_CAPACITY) {}

  get length(): number {
    return this.places.length - this.head;
  }

  offer(order: LabOrder): Promise<boolean> {
    if (this.length >= this.capacity) return Promise.resolve(false);
    this.places.push(order);
    this.wake?.();
    return Promise.resolve(true);
  }

  consume(handler: OrderHandler): Promise<void> {
    this.worker = this.work(handler);
    return Promise.resolve();
  }

  async close(): Promise<void> {
    this.closed = true;
    this.wake?.();
    await this.worker;
  }

  private async work(handler: OrderHandler): Promise<void> {
    while (!this.closed) {
      const order = this.places[this.head];
      if (order === undefined) {
        await new Promise<void>((resolve) => (this.wake = resolve));
        this.wake = undefined;
        continue;
      }
      await handler(order);
      this.places[this.head] = undefined;
      this.head += 1;
      if (this.head >= 1024) this.forgetHandled();
    }
  }

  /** Gives the memory of handled places back, a thousand at a time so that it stays cheap. */
  private forgetHandled(): void {
    this.places.splice(0, this.head);
    this.head = 0;
  }
}
