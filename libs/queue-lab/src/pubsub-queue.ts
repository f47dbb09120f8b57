import type { Redis } from 'ioredis';
import { openLabConnection, whenReady } from './lab-connection.js';
import { decode, encode, type LabOrder, type OrderHandler, type OrderQueue } from './order-queue.js';

/** PUBLISH and SUBSCRIBE, as in the source text. Nothing is kept: who does not listen at that moment never hears it. */
export class PubSubQueue implements OrderQueue {
  private readonly publisher: Redis;
  private subscriber: Redis | undefined;
  private tail: Promise<void> = Promise.resolve();
  private closed = false;

  constructor(
    private readonly url: string,
    private readonly channel: string,
  ) {
    this.publisher = openLabConnection(url);
  }

  /** True means published. It does not mean that anybody listened. */
  async offer(order: LabOrder): Promise<boolean> {
    await whenReady(this.publisher);
    await this.publisher.publish(this.channel, encode(order));
    return true;
  }

  async consume(handler: OrderHandler): Promise<void> {
    const subscriber = openLabConnection(this.url);
    this.subscriber = subscriber;
    await whenReady(subscriber);
    subscriber.on('message', (_channel, text) => {
      this.tail = this.tail.then(() => (this.closed ? undefined : handler(decode(text))));
    });
    // The driver subscribes again after a reconnect.
    await subscriber.subscribe(this.channel);
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.tail;
    this.publisher.disconnect();
    this.subscriber?.disconnect();
  }
}
