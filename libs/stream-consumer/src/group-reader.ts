import { rawEntry, type RawEntry } from '#order-stream';
import type { RedisConnection } from '#redis';

/** Where one consumer reads. */
export interface ReaderPlace {
  /** The stream's key, with prefix and hash tag. */
  readonly stream: string;
  readonly group: string;
  readonly consumer: string;
}

/** What XAUTOCLAIM answered. `vanished`: ids that were pending but are no longer in the stream; the server has dropped them from the pending list. */
export interface Claim {
  readonly cursor: string;
  readonly entries: readonly RawEntry[];
  readonly vanished: readonly string[];
}

/** One consumer of the group as XINFO shows it. */
export interface ConsumerInfo {
  readonly name: string;
  readonly pending: number;
  readonly idleMs: number;
}

type Reply = readonly unknown[];

/**
 * Reads one partition's stream as one consumer of the group, on a connection that nobody else uses: a waiting read holds up whatever is sent
 * behind it. Throws the server's error as it is (NOGROUP, WRONGTYPE, NOPERM, ...), and the driver's where the connection is lost. Replies are
 * checked; one of another shape throws a TypeError.
 */
export class GroupReader {
  constructor(
    private readonly connection: RedisConnection,
    readonly place: ReaderPlace,
  ) {}

  /** Up to `count` entries that nobody was given yet. Waits up to `blockMs` for the first one; 0: does not wait. */
  async readNew(count: number, blockMs: number): Promise<RawEntry[]> {
    // BLOCK 0 would wait for ever.
    const block = blockMs > 0 ? ['BLOCK', Math.ceil(blockMs)] : [];
    return this.read([...block, 'COUNT', count], '>');
  }

  /** Up to `count` entries of this consumer's own pending list after `afterId`, oldest first. Fields are null where the entry was deleted. */
  async readOwnPending(afterId: string, count: number): Promise<RawEntry[]> {
    return this.read(['COUNT', count], afterId);
  }

  /** Takes over up to `count` entries whose consumer was silent for `minIdleMs`, looking through the group's pending list from the cursor on. */
  async claimIdle(cursor: string, minIdleMs: number, count: number): Promise<Claim> {
    const { stream, group, consumer } = this.place;
    const reply = asReply(
      await this.connection.call('xautoclaim', stream, group, consumer, minIdleMs, cursor, 'COUNT', count),
    );
    const [next, entries, vanished] = reply;
    if (typeof next !== 'string' || !Array.isArray(entries)) throw unexpected('XAUTOCLAIM', reply);
    return {
      cursor: next,
      entries: entries.filter((entry) => entry !== null).map(asEntry),
      vanished: Array.isArray(vanished) ? vanished.map(String) : [],
    };
  }

  /**
   * How often each of these own pending entries was handed out. Ids in stream order. An entry that is no longer pending is missing in the answer, and so
   * may be one that stands behind very many others of this consumer.
   */
  async deliveries(entryIds: readonly string[]): Promise<Map<string, number>> {
    const found = new Map<string, number>();
    const first = entryIds[0];
    const last = entryIds.at(-1);
    if (first === undefined || last === undefined) return found;
    const { stream, group, consumer } = this.place;
    const count = Math.max(2 * entryIds.length, 1_000);
    const reply = asReply(await this.connection.call('xpending', stream, group, first, last, count, consumer));
    for (const row of reply) {
      const [id, , , count] = asReply(row);
      found.set(String(id), Number(count));
    }
    return found;
  }

  /** All consumers that the group knows. */
  async consumers(): Promise<ConsumerInfo[]> {
    const reply = asReply(await this.connection.call('xinfo', 'CONSUMERS', this.place.stream, this.place.group));
    return reply.map((row) => {
      const fields = rawEntry('0-0', asReply(row).map(String)).fields ?? {};
      return { name: fields['name'] ?? '', pending: Number(fields['pending']), idleMs: Number(fields['idle']) };
    });
  }

  /** Ends the connection at once, and with it a read that waits: it rejects. Harmless when repeated. */
  disconnect(): void {
    this.connection.disconnect();
  }

  private async read(options: readonly (string | number)[], id: string): Promise<RawEntry[]> {
    const { stream, group, consumer } = this.place;
    const reply = await this.connection.call('xreadgroup', 'GROUP', group, consumer, ...options, 'STREAMS', stream, id);
    if (reply === null) return [];
    const [streamReply] = asReply(reply);
    const entries = asReply(streamReply)[1];
    return entries === undefined ? [] : asReply(entries).map(asEntry);
  }
}

function asReply(value: unknown): Reply {
  if (!Array.isArray(value)) throw unexpected('the stream command', value);
  return value;
}

function asEntry(value: unknown): RawEntry {
  const [id, flat] = asReply(value);
  if (typeof id !== 'string' || (flat !== null && !Array.isArray(flat))) throw unexpected('an entry', value);
  return rawEntry(id, flat as string[] | null);
}

function unexpected(what: string, value: unknown): TypeError {
  return new TypeError(`unexpected reply for ${what}: ${JSON.stringify(value)?.slice(0, 200)}`);
}
