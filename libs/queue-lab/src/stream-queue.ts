import type { Redis } from 'ioredis';
import { BLOCK_SECONDS, keepWorking, openLabConnection, whenReady } from './lab-connection.js';
import type { LabOrder, OrderHandler, OrderQueue } from './order-queue.js';

type Entry = readonly [id: string, fields: string[] | null];

/** How many entries one read takes. */
const READ_COUNT = 100;

/** Which group, and who in it. Consumers of one group share the work; groups read independently. */
export interface StreamReader {
  readonly group: string;
  readonly consumer: string;
  /** Entries that another consumer has held for longer are taken over at the start. Milliseconds. */
  readonly takeOverAfterMs: number;
}

/**
 * XADD, XREADGROUP, XACK. An entry stays in the pending list of the consumer that read it until it is acknowledged, so a dead consumer's
 * entries are taken over. Nothing is lost, an entry may come twice. The group begins at 0: what came before it counts too.
 */
export class StreamQueue implements OrderQueue {
  private readonly offering: Redis;
  private readonly blocking: Redis;
  private closed = false;
  private worker: Promise<void> | undefined;

  constructor(
    url: string,
    private readonly key: string,
    private readonly reader: StreamReader = { group: 'g1', consumer: 'c1', takeOverAfterMs: 0 },
  ) {
    this.offering = openLabConnection(url);
    this.blocking = openLabConnection(url);
  }

  async offer(order: LabOrder): Promise<boolean> {
    await this.add(order);
    return true;
  }

  /** Appends the order and resolves to its entry id, `<milliseconds>-<sequence>`. */
  async add(order: LabOrder): Promise<string> {
    await whenReady(this.offering);
    const id = await this.offering.xadd(
      this.key,
      '*',
      'id',
      order.id,
      'userId',
      order.userId,
      'voucherId',
      order.voucherId,
    );
    if (id === null) throw new Error('XADD gave no id');
    return id;
  }

  async consume(handler: OrderHandler): Promise<void> {
    await whenReady(this.blocking);
    await this.makeGroup();
    await this.takeOver();
    let own = true;
    this.worker = keepWorking(
      this.blocking,
      () => this.closed,
      async () => {
        try {
          const handled = await this.step(own ? '0' : '>', handler);
          if (own && handled === 0) own = false;
        } catch (error) {
          own = true;
          throw error;
        }
      },
    );
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.worker;
    this.offering.disconnect();
    this.blocking.disconnect();
  }

  private async makeGroup(): Promise<void> {
    try {
      await this.blocking.xgroup('CREATE', this.key, this.reader.group, '0', 'MKSTREAM');
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith('BUSYGROUP'))) throw error;
    }
  }

  private async takeOver(): Promise<void> {
    const { group, consumer, takeOverAfterMs } = this.reader;
    let cursor = '0-0';
    do {
      const [next] = (await this.blocking.xautoclaim(this.key, group, consumer, takeOverAfterMs, cursor)) as [string];
      cursor = next;
    } while (cursor !== '0-0');
  }

  private async step(from: '0' | '>', handler: OrderHandler): Promise<number> {
    const { group, consumer } = this.reader;
    const reply = (await this.blocking.xreadgroup(
      'GROUP',
      group,
      consumer,
      'COUNT',
      READ_COUNT,
      'BLOCK',
      BLOCK_SECONDS * 1000,
      'STREAMS',
      this.key,
      from,
    )) as [string, Entry[]][] | null;
    const entries = reply?.[0]?.[1] ?? [];
    const done: string[] = [];
    for (const [id, fields] of entries) {
      if (this.closed) break;
      if (fields !== null) await handler(orderOf(fields));
      done.push(id);
    }
    if (done.length > 0) await this.blocking.xack(this.key, group, ...done);
    return entries.length;
  }
}

function orderOf(fields: string[]): LabOrder {
  const byName = new Map<string, string>();
  for (let at = 0; at + 1 < fields.length; at += 2) byName.set(fields[at] ?? '', fields[at + 1] ?? '');
  const [id, userId, voucherId] = ['id', 'userId', 'voucherId'].map((name) => byName.get(name));
  if (id === undefined || userId === undefined || voucherId === undefined) throw new Error('entry lacks a field');
  return { id, userId, voucherId };
}
