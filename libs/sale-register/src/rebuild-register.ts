import { Injectable } from '@nestjs/common';
import { loadScript, type LuaScript, RedisConnections, runScript } from '#redis';
import { isCanonicalId, type OrderEntry } from '#order-stream';
import { assertToken } from './epoch-register.js';
import { KeySpace } from './key-space.js';
import type { SaleTerms } from './outcomes.js';
import type {
  CorrectStockOutcome,
  GuardLost,
  MarkOutcome,
  ReadmitOutcome,
  ReappendOutcome,
  RebuildBeginOutcome,
  RebuildFinishOutcome,
  RebuildMarksOutcome,
  RemarkOutcome,
} from './repair-outcomes.js';
import { UnknownReplyError, WordReply } from './reply.js';

const REBUILD_BEGIN = script('rebuild-begin.lua');
const REBUILD_MARKS = script('rebuild-marks.lua');
const REBUILD_FINISH = script('rebuild-finish.lua');
const REAPPEND = script('reappend.lua');
const MARK = script('mark.lua');
const REMARK = script('remark.lua');
const CORRECT_STOCK = script('correct-stock.lua');
const READMIT = script('readmit.lua');
const RELEASE = script('release.lua');
const DROP_STRAY_LOGS = script('drop-stray-logs.lua');

/** Marks written by one call. */
export const MAX_REBUILD_MARKS = 1000;

/** One mark to write. `expectedOrderId`: what the reader saw in the buyer's mark, undefined for none. */
export interface RebuiltMark {
  readonly userId: string;
  readonly expectedOrderId: string | undefined;
  readonly orderId: string;
}

/**
 * Rebuilding and repairing. Every script checks the partition's epoch against `epoch` (the value of EpochRegister's `state`, OPEN, or of
 * `begin`) and the server's own history, and looks again at what it changes: readings only suggest. LOST means: the work starts over.
 * All methods throw RedisUnavailableError.
 */
@Injectable()
export class RebuildRegister {
  constructor(
    private readonly connections: RedisConnections,
    private readonly keySpace: KeySpace,
  ) {}

  /** Takes one sale into rebuilding under `token`: nothing is admitted to it until `finish`. Marks stay; keys of another type are dropped. */
  async begin(partition: number, voucherId: string, epoch: string, token: string): Promise<RebuildBeginOutcome> {
    assertToken(token);
    const { sale, stock, marks } = this.keySpace.saleKeys(partition, voucherId);
    const reply = await this.run(REBUILD_BEGIN, [this.keySpace.epoch(partition), sale, stock, marks], [epoch, token]);
    if (reply.word === 'BEGUN' || reply.word === 'LOST') return { kind: reply.word };
    throw reply.unknown();
  }

  /** Writes up to MAX_REBUILD_MARKS marks of a sale in rebuilding, each only where the mark is still the expected one. */
  async writeMarks(
    partition: number,
    voucherId: string,
    epoch: string,
    token: string,
    marks: readonly RebuiltMark[],
  ): Promise<RebuildMarksOutcome> {
    if (marks.length === 0) return { kind: 'WRITTEN', written: 0, kept: [] };
    if (marks.length > MAX_REBUILD_MARKS) throw new TypeError(`at most ${MAX_REBUILD_MARKS} marks per call`);
    assertIds(marks.flatMap(({ userId, orderId }) => [userId, orderId]));
    const keys = this.keySpace.saleKeys(partition, voucherId);
    const reply = await this.run(
      REBUILD_MARKS,
      [this.keySpace.epoch(partition), keys.sale, keys.marks],
      [
        epoch,
        token,
        marks.length,
        ...marks.map(({ userId }) => userId),
        ...marks.map(({ expectedOrderId }) => expectedOrderId ?? ''),
        ...marks.map(({ orderId }) => orderId),
      ],
    );
    if (reply.word === 'LOST') return { kind: 'LOST' };
    if (reply.word === 'WRITTEN') return { kind: 'WRITTEN', written: reply.number(1), kept: reply.texts(2) };
    throw reply.unknown();
  }

  /** Ends the rebuilding: stock = units - marks (counted by the script), terms written, sale open. */
  async finish(partition: number, terms: SaleTerms, epoch: string, token: string): Promise<RebuildFinishOutcome> {
    const { beginMs, endMs, units, unitsVersion } = terms;
    if (![beginMs, endMs, units, unitsVersion].every((number) => Number.isSafeInteger(number) && number >= 0)) {
      throw new TypeError('times, units and versions are whole numbers from 0 on');
    }
    const { sale, stock, marks } = this.keySpace.saleKeys(partition, terms.voucherId);
    const reply = await this.run(
      REBUILD_FINISH,
      [this.keySpace.epoch(partition), sale, stock, marks],
      [epoch, token, beginMs, endMs, units, unitsVersion],
    );
    if (reply.word === 'LOST') return { kind: 'LOST' };
    if (reply.word !== 'FINISHED') throw reply.unknown();
    return {
      kind: 'FINISHED',
      unitsLeft: reply.number(1),
      marks: reply.number(2),
      units: reply.number(3),
      unitsVersion: reply.number(4),
    };
  }

  /** Repair "mark without entry, dead letter, row or rejection": appends the entry again, same id, while the mark holds the order. */
  async reappend(partition: number, order: OrderEntry, epoch: string): Promise<ReappendOutcome> {
    assertIds([order.userId, order.orderId]);
    const reply = await this.run(
      REAPPEND,
      [
        this.keySpace.epoch(partition),
        this.keySpace.stream(partition),
        this.keySpace.marks(partition, order.voucherId),
      ],
      [epoch, order.userId, order.voucherId, order.orderId],
    );
    if (reply.word === 'LOST' || reply.word === 'NOT_HELD') return { kind: reply.word };
    if (reply.word === 'APPENDED') return { kind: 'APPENDED', entryId: reply.text(1) };
    throw reply.unknown();
  }

  /**
   * Repair "active row without mark": marks the buyer and takes the unit; the stock may go below 0. Read the row again afterwards and
   * release if it is no longer active.
   */
  async mark(partition: number, order: OrderEntry, epoch: string): Promise<MarkOutcome> {
    assertIds([order.userId, order.orderId]);
    const { sale, stock, marks } = this.keySpace.saleKeys(partition, order.voucherId);
    const reply = await this.run(
      MARK,
      [this.keySpace.epoch(partition), sale, stock, marks],
      [epoch, order.userId, order.orderId],
    );
    switch (reply.word) {
      case 'LOST':
      case 'NOT_PUBLISHED':
        return { kind: reply.word };
      case 'HELD':
        return { kind: 'HELD', orderId: reply.text(1) };
      case 'MARKED':
        return { kind: 'MARKED', unitsLeft: reply.number(1) };
      default:
        throw reply.unknown();
    }
  }

  /** Repair "mark names another id than the active row": replaces `expectedOrderId` by `order.orderId`. Read the row again afterwards. */
  async remark(partition: number, order: OrderEntry, expectedOrderId: string, epoch: string): Promise<RemarkOutcome> {
    assertIds([order.userId, order.orderId]);
    const { sale, marks } = this.keySpace.saleKeys(partition, order.voucherId);
    const reply = await this.run(
      REMARK,
      [this.keySpace.epoch(partition), sale, marks],
      [epoch, order.userId, expectedOrderId, order.orderId],
    );
    switch (reply.word) {
      case 'LOST':
      case 'REMARKED':
        return { kind: reply.word };
      case 'CHANGED':
        return { kind: 'CHANGED', orderId: reply.text(1) === '' ? undefined : reply.text(1) };
      default:
        throw reply.unknown();
    }
  }

  /** Repair "counter drift": moves the stock by units - marks - stock, if that still is `expectedDifference` (not 0). */
  async correctStock(
    partition: number,
    voucherId: string,
    expectedDifference: number,
    epoch: string,
  ): Promise<CorrectStockOutcome> {
    if (!Number.isSafeInteger(expectedDifference)) throw new TypeError('a difference is a whole number');
    const { sale, stock, marks } = this.keySpace.saleKeys(partition, voucherId);
    const keys = [this.keySpace.epoch(partition), sale, stock, marks];
    const reply = await this.run(CORRECT_STOCK, keys, [epoch, expectedDifference]);
    switch (reply.word) {
      case 'LOST':
      case 'NOT_PUBLISHED':
        return { kind: reply.word };
      case 'CHANGED':
        return { kind: 'CHANGED', difference: reply.number(1) };
      case 'CORRECTED':
        return { kind: 'CORRECTED', before: reply.number(1), after: reply.number(2) };
      default:
        throw reply.unknown();
    }
  }

  /**
   * Repair "mark that names no order of this buyer": takes mark and unit back, while the mark still holds this value. For what another hand
   * wrote into the marks: neither id need be canonical. False where the mark is another one by now.
   */
  async dropStrayMark(partition: number, voucherId: string, userId: string, value: string): Promise<boolean> {
    const { sale, stock, marks } = this.keySpace.saleKeys(partition, voucherId);
    const reply = await this.run(RELEASE, [sale, stock, marks], [userId, value, '']);
    if (reply.word === 'RELEASED') return true;
    if (reply.word === 'NOT_HELD') return false;
    throw reply.unknown();
  }

  /** Repair "stream or dead letters of another type": drops such keys; they come back by themselves. Answers how many there were. */
  async dropStrayLogs(
    partition: number,
    epoch: string,
  ): Promise<{ readonly kind: 'DROPPED'; readonly keys: number } | GuardLost> {
    const { keySpace } = this;
    const keys = [keySpace.epoch(partition), keySpace.stream(partition), keySpace.deadLetters(partition)];
    const reply = await this.run(DROP_STRAY_LOGS, keys, [epoch]);
    if (reply.word === 'LOST') return { kind: 'LOST' };
    if (reply.word === 'DROPPED') return { kind: 'DROPPED', keys: reply.number(1) };
    throw reply.unknown();
  }

  /** Takes an order that only a consumer still holds back into the register, same id. NO_UNITS and HELD: reject it. */
  async readmit(partition: number, order: OrderEntry): Promise<ReadmitOutcome> {
    assertIds([order.userId, order.orderId]);
    const { sale, stock, marks } = this.keySpace.saleKeys(partition, order.voucherId);
    const reply = await this.run(
      READMIT,
      [this.keySpace.epoch(partition), this.keySpace.stream(partition), sale, stock, marks],
      [order.userId, order.voucherId, order.orderId],
    );
    switch (reply.word) {
      case 'CLOSED':
      case 'NOT_PUBLISHED':
      case 'NO_UNITS':
        return { kind: reply.word };
      case 'HELD':
        return { kind: 'HELD', orderId: reply.text(1) };
      case 'READMITTED':
        return { kind: 'READMITTED', entryId: reply.text(1) };
      default:
        throw reply.unknown();
    }
  }

  private async run(lua: LuaScript, keys: readonly string[], args: readonly (string | number)[]): Promise<WordReply> {
    const reply = await runScript(this.connections.command, lua, keys, args);
    if (reply === null || reply === undefined) throw new UnknownReplyError(lua.name, reply);
    return new WordReply(lua.name, reply);
  }
}

function script(name: string): LuaScript {
  return loadScript(new URL(`./scripts/${name}`, import.meta.url));
}

function assertIds(ids: readonly string[]): void {
  if (!ids.every(isCanonicalId)) throw new TypeError('an id is not canonical');
}
