import { randomInt } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { loadScript, RedisConnections, runScript } from '#redis';
import { KeySpace } from './key-space.js';
import { UnknownReplyError } from './reply.js';

const LEASE = loadScript(new URL('./scripts/lease.lua', import.meta.url));
const COUNTER_LIFE_SECONDS = 3 * 24 * 3600;
/** Sequences are 32 bits wide; the caller takes each number modulo this. */
export const SEQUENCE_SPAN = 2 ** 32;
const MAX_BLOCK = 1_000_000;

/** Blocks of a day's sequence numbers, no number handed out twice while the counter lives. */
@Injectable()
export class SequenceLease {
  constructor(
    private readonly connections: RedisConnections,
    private readonly keySpace: KeySpace,
  ) {}

  /**
   * Leases `size` numbers of the counter `name` for `day` (`yyyy:MM:dd`, UTC): `first`, `first + 1`, ... `first + size - 1`, each to be
   * taken modulo SEQUENCE_SPAN. A counter that is missing starts at a random place. Throws RedisUnavailableError.
   */
  async lease(name: string, day: string, size: number): Promise<{ readonly first: number }> {
    if (!/^[a-z]+$/.test(name) || !/^\d{4}:\d{2}:\d{2}$/.test(day)) throw new TypeError(`no counter: ${name} ${day}`);
    if (!Number.isSafeInteger(size) || size < 1 || size > MAX_BLOCK) throw new TypeError(`no size of a block: ${size}`);
    const args = [size, randomInt(SEQUENCE_SPAN), COUNTER_LIFE_SECONDS];
    const last = await runScript(this.connections.command, LEASE, [this.keySpace.sequence(name, day)], args);
    if (typeof last !== 'number' || !Number.isSafeInteger(last)) throw new UnknownReplyError(LEASE.name, last);
    return { first: last - size + 1 };
  }
}
