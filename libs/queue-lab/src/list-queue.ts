import type { Redis } from 'ioredis';
import { BLOCK_SECONDS, keepWorking, openLabConnection, whenReady } from './lab-connection.js';
import { decode, encode, type LabOrder, type OrderHandler, type OrderQueue } from './order-queue.js';

abstract class ListQueue implements OrderQueue {
  protected readonly offering: Redis;
  protected readonly blocking: Redis;
  private closed = false;
  private worker: Promise<void> | undefined;

  constructor(
    url: string,
    protected readonly key: string,
  ) {
    this.offering = openLabConnection(url);
    this.blocking = openLabConnection(url);
  }

  async offer(order: LabOrder): Promise<boolean> {
    await whenReady(this.offering);
    await this.offering.lpush(this.key, encode(order));
    return true;
  }

  async consume(handler: OrderHandler): Promise<void> {
    await whenReady(this.blocking);
    await this.begin();
    this.worker = keepWorking(
      this.blocking,
      () => this.closed,
      () => this.step(handler),
    );
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.worker;
    this.offering.disconnect();
    this.blocking.disconnect();
  }

  /** What must be done before the first order is taken. */
  protected abstract begin(): Promise<void>;
  /** Takes one order, or none within the block, and handles it. */
  protected abstract step(handler: OrderHandler): Promise<void>;
}

/** LPUSH and BRPOP, as in the source text. Taking an order removes it: who dies with it in hand loses it. */
export class PlainListQueue extends ListQueue {
  protected begin(): Promise<void> {
    return Promise.resolve();
  }

  protected async step(handler: OrderHandler): Promise<void> {
    const taken = await this.blocking.brpop(this.key, BLOCK_SECONDS);
    if (taken !== null) await handler(decode(taken[1]));
  }
}

/**
 * LPUSH and BLMOVE: taking an order moves it into the consumer's processing list, handling removes it there. At its start a consumer puts back
 * what its predecessor of the same name had in hand: nothing is lost, an order may come twice.
 */
export class ReliableListQueue extends ListQueue {
  private readonly processingKey: string;

  constructor(url: string, key: string, consumer = 'c1') {
    super(url, key);
    this.processingKey = `${key}:processing:${consumer}`;
  }

  protected async begin(): Promise<void> {
    while ((await this.blocking.lmove(this.processingKey, this.key, 'LEFT', 'RIGHT')) !== null);
  }

  protected async step(handler: OrderHandler): Promise<void> {
    const taken = await this.blocking.blmove(this.key, this.processingKey, 'RIGHT', 'LEFT', BLOCK_SECONDS);
    if (taken === null) return;
    await handler(decode(taken));
    await this.blocking.lrem(this.processingKey, 1, taken);
  }
}
