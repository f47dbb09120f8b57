import { EventEmitter } from 'node:events';
import { Injectable } from '@nestjs/common';
import { loadScript, RedisConnections, runScript } from '#redis';
import type { EpochBeginOutcome, EpochOpenOutcome, EpochState, RebuildReason, RebuildRequest } from './epoch.types.js';
import { KeySpace } from './key-space.js';
import { UnknownReplyError, WordReply } from './reply.js';

const STATE = loadScript(new URL('./scripts/epoch-state.lua', import.meta.url));
const BEGIN = loadScript(new URL('./scripts/epoch-begin.lua', import.meta.url));
const OPEN = loadScript(new URL('./scripts/epoch-open.lua', import.meta.url));
const RECONCILING = /^reconciling:([^:]+):([0-9a-f]+)$/;

/** The epoch of each partition: on which data history of the server it was last reconciled. All methods throw RedisUnavailableError. */
@Injectable()
export class EpochRegister {
  private readonly requests = new EventEmitter();

  constructor(
    private readonly connections: RedisConnections,
    private readonly keySpace: KeySpace,
  ) {}

  /** Whether the partition may admit, and why not; read together with the server's own history. */
  async state(partition: number): Promise<EpochState> {
    const reply = await runScript(this.connections.command, STATE, [this.keySpace.epoch(partition)], []);
    if (!Array.isArray(reply) || reply.length !== 3) throw new UnknownReplyError(STATE.name, reply);
    const [history, why, value] = reply as unknown[];
    if (why === 'NO_RIGHT' || why === 'NO_HISTORY') return { kind: why };
    if (typeof history !== 'string') throw new UnknownReplyError(STATE.name, reply);
    if (typeof value !== 'string') return { kind: 'CLOSED', value: undefined };
    if (value === history) return { kind: 'OPEN', value };
    const [, token, begunOn] = RECONCILING.exec(value) ?? [];
    if (token === undefined) return { kind: 'CLOSED', value };
    return { kind: 'RECONCILING', value, token, sameServer: begunOn === history };
  }

  /**
   * Closes the partition for a reconciler with this token (fresh and random: `[0-9a-z]`), if its epoch is still `expected` (the value of
   * `state`; undefined where the key was missing). It may take over from another reconciler, whose scripts then answer LOST.
   */
  async begin(partition: number, token: string, expected: string | undefined): Promise<EpochBeginOutcome> {
    assertToken(token);
    const keys = [this.keySpace.epoch(partition)];
    const reply = new WordReply(
      BEGIN.name,
      await runScript(this.connections.command, BEGIN, keys, [expected ?? '', token]),
    );
    switch (reply.word) {
      case 'BEGUN': {
        const value = reply.text(1);
        const [, , history] = RECONCILING.exec(value) ?? [];
        if (history === undefined) throw reply.unknown();
        return { kind: 'BEGUN', value, history };
      }
      case 'CHANGED':
        return { kind: 'CHANGED', value: reply.text(1) === '' ? undefined : reply.text(1) };
      case 'NO_RIGHT':
      case 'NO_HISTORY':
        return { kind: reply.word };
      default:
        throw reply.unknown();
    }
  }

  /**
   * Opens the partition if its epoch is still `value` (of `begin`), the server's history is the one in it, and every voucher of the list is
   * complete: sale open, stock there.
   */
  async open(partition: number, value: string, voucherIds: readonly string[]): Promise<EpochOpenOutcome> {
    const keys = [this.keySpace.epoch(partition)];
    for (const voucherId of voucherIds) {
      keys.push(this.keySpace.sale(partition, voucherId), this.keySpace.stock(partition, voucherId));
    }
    const reply = new WordReply(
      OPEN.name,
      await runScript(this.connections.command, OPEN, keys, [value, ...voucherIds]),
    );
    switch (reply.word) {
      case 'OPENED':
        return { kind: 'OPENED', value: reply.text(1) };
      case 'LOST':
        return { kind: 'LOST' };
      case 'INCOMPLETE':
        return { kind: 'INCOMPLETE', voucherIds: reply.texts(1) };
      default:
        throw reply.unknown();
    }
  }

  /** Asks whoever reconciles in this process. Cheap, never throws, harmless in any number: the listener merges repeats. */
  requestRebuild(partition: number, voucherId: string | undefined, reason: RebuildReason): void {
    this.requests.emit('rebuild', { partition, voucherId, reason } satisfies RebuildRequest);
  }

  /** Hears the requests of this process. The listener must not throw. Returns how to stop listening. */
  onRebuildRequested(listener: (request: RebuildRequest) => void): () => void {
    this.requests.on('rebuild', listener);
    return () => this.requests.off('rebuild', listener);
  }
}

/** A token stands between colons in the epoch's value. */
export function assertToken(token: string): void {
  if (!/^[0-9a-z]{8,64}$/.test(token)) throw new TypeError('a token is 8 to 64 characters of 0-9 and a-z');
}
