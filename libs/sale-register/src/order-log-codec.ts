import { decodeEntry, entryTimeMs, rawEntry } from '#order-stream';
import type { DeadLetter, DeadLetterRecord, StreamStats } from './order-log.types.js';
import { UnknownReplyError } from './reply.js';

const MAX_FIELDS = 32;
const MAX_VALUE_CHARACTERS = 4096;
const STATS_SCRIPT = 'stream-stats.lua';

/** Fields and values of a letter in the log. The order's own fields travel as JSON, so that no name of theirs meets one of ours. */
export function encodeLetter(letter: DeadLetterRecord): string[] {
  return [
    'cause',
    clipped(letter.cause),
    'entryId',
    letter.entryId,
    'deliveries',
    String(letter.deliveries),
    'firstSeenMs',
    String(letter.firstSeenMs),
    'fields',
    JSON.stringify(boundedFields(letter.fields)),
  ];
}

/** A letter as it stands in the log; what another hand left incomplete is shown as far as it goes. */
export function decodeLetter(partition: number, id: string, flat: readonly string[]): DeadLetter {
  const written = rawEntry(id, flat).fields ?? {};
  const fields = parseFields(written['fields']);
  const entryId = written['entryId'] ?? '';
  const decoded = decodeEntry({ entryId, fields });
  return {
    partition,
    id,
    entryId,
    cause: written['cause'] ?? 'unknown',
    fields,
    deliveries: count(written['deliveries']) ?? 0,
    firstSeenMs: count(written['firstSeenMs']) ?? entryTimeMs(id),
    order: decoded.kind === 'ORDER' ? decoded.order : undefined,
  };
}

/** Throws UnknownReplyError for a reply outside the script's contract. */
export function decodeStats(partition: number, reply: unknown): StreamStats {
  if (!Array.isArray(reply) || reply.length !== 10) throw new UnknownReplyError(STATS_SCRIPT, reply);
  const [exists, length, lag, pending, oldestPending, oldestUndelivered, nowMs, deadLetters, consumers, foreign] =
    reply as unknown[];
  const now = requireCount(nowMs, reply);
  const ageMs = (entryId: unknown) =>
    typeof entryId === 'string' ? Math.max(0, now - entryTimeMs(entryId)) : undefined;
  return {
    partition,
    exists: exists === 1,
    length: requireCount(length, reply),
    lag: count(lag),
    pending: requireCount(pending, reply),
    oldestPendingMs: ageMs(oldestPending),
    oldestUndeliveredMs: ageMs(oldestUndelivered),
    consumers: triples(consumers, reply).map(([name, owned, idle]) => ({
      name: String(name),
      pending: requireCount(owned, reply),
      idleMs: requireCount(idle, reply),
    })),
    deadLetters: requireCount(deadLetters, reply),
    foreignGroups: triples(foreign, reply).map(([name, behind, owned]) => ({
      name: String(name),
      lag: count(behind),
      pending: requireCount(owned, reply),
    })),
  };
}

function triples(flat: unknown, reply: unknown): unknown[][] {
  if (!Array.isArray(flat) || flat.length % 3 !== 0) throw new UnknownReplyError(STATS_SCRIPT, reply);
  return Array.from({ length: flat.length / 3 }, (_, at) => flat.slice(3 * at, 3 * at + 3) as unknown[]);
}

function requireCount(part: unknown, reply: unknown): number {
  const number = count(part);
  if (number === undefined) throw new UnknownReplyError(STATS_SCRIPT, reply);
  return number;
}

function count(part: unknown): number | undefined {
  const number = typeof part === 'string' && part !== '' ? Number(part) : part;
  return typeof number === 'number' && Number.isSafeInteger(number) && number >= 0 ? number : undefined;
}

function boundedFields(fields: Readonly<Record<string, string>>): Record<string, string> {
  const kept = Object.entries(fields).slice(0, MAX_FIELDS);
  return Object.fromEntries(kept.map(([name, value]) => [clipped(name), clipped(value)]));
}

function clipped(text: string): string {
  return text.length <= MAX_VALUE_CHARACTERS ? text : `${text.slice(0, MAX_VALUE_CHARACTERS)}...`;
}

function parseFields(json: string | undefined): Record<string, string> {
  try {
    const parsed: unknown = JSON.parse(json ?? '{}');
    if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return {};
    return Object.fromEntries(Object.entries(parsed).map(([name, value]) => [name, String(value)]));
  } catch {
    return {};
  }
}
