import { Injectable } from '@nestjs/common';
import { guardRedis, loadScript, RedisConnections, runScript } from '#redis';
import {
  isCanonicalId,
  isEntryId,
  LAST_ENTRY_ID,
  nextEntryId,
  type OrderEntry,
  rawEntry,
  type RawEntry,
} from '#order-stream';
import { decodeLetter, decodeStats, encodeLetter } from './order-log-codec.js';
import type {
  AcknowledgeOutcome,
  DeadLetter,
  DeadLetterOutcome,
  DeadLetterRecord,
  RedriveOutcome,
  StreamStats,
} from './order-log.types.js';
import { guardKeys } from './damaged-key.js';
import { KeySpace } from './key-space.js';
import { UnknownReplyError, WordReply } from './reply.js';

const ACKNOWLEDGE = loadScript(new URL('./scripts/acknowledge.lua', import.meta.url));
const DEAD_LETTER = loadScript(new URL('./scripts/dead-letter.lua', import.meta.url));
const REDRIVE = loadScript(new URL('./scripts/redrive.lua', import.meta.url));
const DROP_IDLE_CONSUMER = loadScript(new URL('./scripts/drop-idle-consumer.lua', import.meta.url));
const STREAM_STATS = loadScript(new URL('./scripts/stream-stats.lua', import.meta.url));
/** Entries acknowledged by one call: bounds the time for which it holds the server. */
const ACKNOWLEDGE_PIECE = 1000;
const FIND_PIECE = 200;
const COUNT_PAGE = 2000;
/** How long a backlog counted from outside may be believed. */
export const BACKLOG_LIFE_MS = 5000;

/** The stream side of the register. All methods throw RedisUnavailableError for passing trouble. */
@Injectable()
export class OrderLog {
  constructor(
    private readonly connections: RedisConnections,
    private readonly keySpace: KeySpace,
  ) {}

  /** Makes stream and group where they are missing; the group starts at id 0, so nothing that waits is skipped. */
  async ensureGroup(partition: number): Promise<'CREATED' | 'EXISTS'> {
    const stream = this.keySpace.stream(partition);
    try {
      await guardRedis(this.connections.command.xgroup('CREATE', stream, this.keySpace.group, '0', 'MKSTREAM'));
      return 'CREATED';
    } catch (error) {
      if (error instanceof Error && error.message.startsWith('BUSYGROUP')) return 'EXISTS';
      throw error;
    }
  }

  /** Those of the partition's two logs whose key is of another type: nothing can be appended to them. */
  async strayLogs(partition: number): Promise<('stream' | 'dead letters')[]> {
    const { command } = this.connections;
    const types = await guardRedis(
      Promise.all([command.type(this.keySpace.stream(partition)), command.type(this.keySpace.deadLetters(partition))]),
    );
    const names = ['stream', 'dead letters'] as const;
    return names.filter((_, at) => types[at] !== 'none' && types[at] !== 'stream');
  }

  /** Acknowledges finished entries and removes what every group has finished, 1,000 per call. Repeats are harmless. Empty: only removes. */
  async acknowledge(partition: number, entryIds: readonly string[]): Promise<AcknowledgeOutcome> {
    let acknowledged = 0;
    let trimmed = 0;
    for (let at = 0; at === 0 || at < entryIds.length; at += ACKNOWLEDGE_PIECE) {
      const args = [this.keySpace.group, ...entryIds.slice(at, at + ACKNOWLEDGE_PIECE)];
      const reply = await runScript(this.connections.command, ACKNOWLEDGE, [this.keySpace.stream(partition)], args);
      if (!Array.isArray(reply) || typeof reply[0] !== 'number' || typeof reply[1] !== 'number') {
        throw new UnknownReplyError(ACKNOWLEDGE.name, reply);
      }
      acknowledged += reply[0];
      trimmed += reply[1];
    }
    return { acknowledged, trimmed };
  }

  /** Moves a pending entry into the dead letters, together with its acknowledgement; written once whoever repeats or races it. */
  async deadLetter(partition: number, letter: DeadLetterRecord): Promise<DeadLetterOutcome> {
    assertEntryId(letter.entryId);
    const keys = [this.keySpace.stream(partition), this.keySpace.deadLetters(partition)];
    const args = [this.keySpace.group, letter.entryId, ...encodeLetter(letter)];
    const reply = new WordReply(DEAD_LETTER.name, await runScript(this.connections.command, DEAD_LETTER, keys, args));
    if (reply.word === 'NOT_PENDING') return { kind: 'NOT_PENDING' };
    if (reply.word === 'WRITTEN') return { kind: 'WRITTEN', id: reply.text(1) };
    throw reply.unknown();
  }

  /** Dead letters in the order of their ids, at most `limit`, behind `afterId` where given. */
  async listDeadLetters(partition: number, limit: number, afterId?: string): Promise<DeadLetter[]> {
    if (afterId === LAST_ENTRY_ID) return [];
    const from = afterId === undefined ? '-' : nextEntryId(afterId);
    const key = this.keySpace.deadLetters(partition);
    const found = await guardKeys(this.connections.command.xrange(key, from, '+', 'COUNT', limit));
    return found.map(([id, flat]) => decodeLetter(partition, id, flat));
  }

  async findDeadLetter(partition: number, id: string): Promise<DeadLetter | undefined> {
    assertEntryId(id);
    const [found] = await guardKeys(this.connections.command.xrange(this.keySpace.deadLetters(partition), id, id));
    return found === undefined ? undefined : decodeLetter(partition, found[0], found[1]);
  }

  /** Appends a letter's order again and removes the letter, in one script, while the mark holds the order. Read the order first. */
  async redrive(partition: number, id: string, order: OrderEntry): Promise<RedriveOutcome> {
    assertEntryId(id);
    if (!isCanonicalId(order.userId) || !isCanonicalId(order.orderId)) throw new TypeError('an id is not canonical');
    const keys = [
      this.keySpace.stream(partition),
      this.keySpace.deadLetters(partition),
      this.keySpace.marks(partition, order.voucherId),
    ];
    const args = [id, order.userId, order.voucherId, order.orderId];
    const reply = new WordReply(
      REDRIVE.name,
      await guardKeys(runScript(this.connections.command, REDRIVE, keys, args)),
    );
    switch (reply.word) {
      case 'GONE':
      case 'NOT_HELD':
        return { kind: reply.word };
      case 'REDRIVEN':
        return { kind: 'REDRIVEN', entryId: reply.text(1) };
      default:
        throw reply.unknown();
    }
  }

  /** Removes a letter; false where it was gone already. */
  async removeDeadLetter(partition: number, id: string): Promise<boolean> {
    assertEntryId(id);
    return (await guardKeys(this.connections.command.xdel(this.keySpace.deadLetters(partition), id))) === 1;
  }

  /** Removes a consumer's name from the group if it owns no pending entry and was silent for `minIdleMs`, both checked in the same script. */
  async dropIdleConsumer(partition: number, name: string, minIdleMs: number): Promise<'DROPPED' | 'KEPT' | 'UNKNOWN'> {
    const keys = [this.keySpace.stream(partition)];
    const args = [this.keySpace.group, name, minIdleMs];
    const raw = await runScript(this.connections.command, DROP_IDLE_CONSUMER, keys, args);
    const reply = new WordReply(DROP_IDLE_CONSUMER.name, raw);
    switch (reply.word) {
      case 'DROPPED':
      case 'KEPT':
      case 'UNKNOWN':
        return reply.word;
      default:
        throw reply.unknown();
    }
  }

  /** The stream's state at one instant, in one call. */
  async stats(partition: number): Promise<StreamStats> {
    const keys = [this.keySpace.stream(partition), this.keySpace.deadLetters(partition)];
    const reply = await runScript(this.connections.command, STREAM_STATS, keys, [this.keySpace.group]);
    return decodeStats(partition, reply);
  }

  /** One entry of the stream, or undefined where it is gone (acknowledged and removed, or lost). */
  async findEntry(partition: number, entryId: string): Promise<RawEntry | undefined> {
    return (await this.findEntries(partition, [entryId]))[0];
  }

  /** Those of the entries that still stand in the stream; a missing stream has none. */
  async findEntries(partition: number, entryIds: readonly string[]): Promise<RawEntry[]> {
    entryIds.forEach(assertEntryId);
    const { command } = this.connections;
    const key = this.keySpace.stream(partition);
    const found: RawEntry[] = [];
    for (let at = 0; at < entryIds.length; at += FIND_PIECE) {
      const piece = entryIds.slice(at, at + FIND_PIECE);
      const ranges = await guardKeys(Promise.all(piece.map((entryId) => command.xrange(key, entryId, entryId))));
      for (const [entry] of ranges) if (entry !== undefined) found.push(rawEntry(entry[0], entry[1]));
    }
    return found;
  }

  /** Entries from `fromId` on (inclusive), at most `limit`, in order: for readers of the whole stream. */
  async readEntries(partition: number, fromId: string, limit: number): Promise<RawEntry[]> {
    assertEntryId(fromId);
    const key = this.keySpace.stream(partition);
    const found = await guardKeys(this.connections.command.xrange(key, fromId, '+', 'COUNT', limit));
    return found.map(([entryId, flat]) => rawEntry(entryId, flat));
  }

  /** The entries of one page behind `entryId`; `undefined` starts at the beginning. */
  async readEntriesAfter(partition: number, entryId: string | undefined, limit: number): Promise<RawEntry[]> {
    if (entryId === LAST_ENTRY_ID) return [];
    return this.readEntries(partition, entryId === undefined ? '0-0' : nextEntryId(entryId), limit);
  }

  /**
   * Counts undelivered and pending entries from outside, for the admission script, while the server cannot tell the group's lag (an entry
   * was deleted by hand). Walks the delivered front of the stream for at most `budgetMs`; what was not walked counts as backlog.
   */
  async measureBacklog(partition: number, budgetMs: number): Promise<number> {
    const deadlineMs = performance.now() + budgetMs;
    const stats = await this.stats(partition);
    let backlog = stats.exists && stats.lag !== undefined ? stats.lag + stats.pending : stats.length + stats.pending;
    if (stats.exists && stats.lag === undefined) {
      backlog -= await this.countDelivered(partition, deadlineMs);
    }
    const key = this.keySpace.backlog(partition);
    await guardRedis(this.connections.command.set(key, String(Math.max(0, backlog)), 'PX', BACKLOG_LIFE_MS));
    return Math.max(0, backlog);
  }

  private async countDelivered(partition: number, deadlineMs: number): Promise<number> {
    const { command } = this.connections;
    const key = this.keySpace.stream(partition);
    const last = await this.lastDelivered(partition);
    let from = '-';
    let counted = 0;
    while (last !== undefined && performance.now() < deadlineMs) {
      const page = await guardRedis(command.xrange(key, from, last, 'COUNT', COUNT_PAGE));
      counted += page.length;
      const end = page[page.length - 1];
      if (end === undefined || page.length < COUNT_PAGE) break;
      from = nextEntryId(end[0]);
    }
    return counted;
  }

  private async lastDelivered(partition: number): Promise<string | undefined> {
    const groups = await guardRedis(this.connections.command.xinfo('GROUPS', this.keySpace.stream(partition)));
    for (const group of Array.isArray(groups) ? (groups as unknown[][]) : []) {
      if (group[group.indexOf('name') + 1] !== this.keySpace.group) continue;
      const last = group[group.indexOf('last-delivered-id') + 1];
      return isEntryId(last) ? last : undefined;
    }
    return undefined;
  }
}

function assertEntryId(entryId: string): void {
  if (!isEntryId(entryId)) throw new TypeError(`not the id of a stream entry: ${JSON.stringify(entryId)}`);
}
