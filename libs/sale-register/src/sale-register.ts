import { Injectable } from '@nestjs/common';
import { loadScript, type LuaScript, RedisConnections, runScript } from '#redis';
import { isCanonicalId, type OrderEntry } from '#order-stream';
import { Admission } from './admission.js';
import { guardKeys } from './damaged-key.js';
import { KeySpace } from './key-space.js';
import type {
  AdmissionOutcome,
  AdmissionRequest,
  Mark,
  PublishOutcome,
  ReleaseOutcome,
  RestockOutcome,
  SaleReading,
  SaleTerms,
} from './outcomes.js';
import { UnknownReplyError, wholeNumber, WordReply } from './reply.js';

const PUBLISH = script('publish.lua');
const RESTOCK = script('restock.lua');
const RELEASE = script('release.lua');
const READ_SALES = script('read-sales.lua');
const READ_PIECE = 100;
const SCAN_COUNT = 1000;

/**
 * The Redis side of the sales: each method is one script or one command, with the connection's deadline. All but `admit` throw
 * RedisUnavailableError (of #redis) for passing trouble, keys of another type included.
 */
@Injectable()
export class SaleRegister {
  constructor(
    private readonly connections: RedisConnections,
    private readonly keySpace: KeySpace,
    private readonly admission: Admission,
  ) {}

  /**
   * Decides purchases of one partition, all in one script call per 1,000, in the order given; the outcomes stand in the same order.
   * `timeLeftMs`: how long the caller will wait. Never throws for Redis trouble: what was not sent, or was refused by the server at the
   * start, is UNAVAILABLE; what was sent and not answered in time is OUTCOME_UNKNOWN. Throws a TypeError for an id that is not canonical.
   */
  admit(partition: number, batch: readonly AdmissionRequest[], timeLeftMs: number): Promise<AdmissionOutcome[]> {
    return this.admission.admit(partition, batch, timeLeftMs);
  }

  /** Puts a voucher on sale. Never touches a sale that is there. The voucher's partition is made known by `SaleDirectory.record`. */
  async publish(partition: number, terms: SaleTerms): Promise<PublishOutcome> {
    assertTerms(terms);
    const { sale, stock, marks } = this.keySpace.saleKeys(partition, terms.voucherId);
    const { beginMs, endMs, units, unitsVersion } = terms;
    const reply = await this.run(
      PUBLISH,
      [this.keySpace.epoch(partition), sale, stock, marks],
      [beginMs, endMs, units, unitsVersion],
    );
    switch (reply.word) {
      case 'PUBLISHED':
      case 'EXISTS':
      case 'CLOSED':
      case 'NEEDS_REBUILD':
        return { kind: reply.word };
      default:
        throw reply.unknown();
    }
  }

  /** Brings the units offered to `units` under `unitsVersion`; the stock moves by the difference. Repeats and reordered calls are harmless. */
  async restock(
    partition: number,
    change: Pick<SaleTerms, 'voucherId' | 'units' | 'unitsVersion'>,
  ): Promise<RestockOutcome> {
    assertNumbers([change.units, change.unitsVersion]);
    const { sale, stock } = this.keySpace.saleKeys(partition, change.voucherId);
    const keys = [this.keySpace.epoch(partition), sale, stock];
    const reply = await this.run(RESTOCK, keys, [change.units, change.unitsVersion]);
    switch (reply.word) {
      case 'APPLIED':
      case 'ALREADY':
      case 'INSUFFICIENT_UNITS':
        return { kind: reply.word, unitsLeft: reply.number(1) };
      case 'CONFLICT':
        return { kind: 'CONFLICT', units: reply.number(1), unitsVersion: reply.number(2) };
      case 'NOT_PUBLISHED':
      case 'CLOSED':
        return { kind: reply.word };
      default:
        throw reply.unknown();
    }
  }

  /**
   * Gives mark and unit of `order` back, or with `activeOrderId` puts that order's id into the mark instead; only while the mark holds this
   * very order. Call it only after a durable record says that the order is rejected or cancelled. Idempotent for ever.
   */
  async release(partition: number, order: OrderEntry, activeOrderId?: string): Promise<ReleaseOutcome> {
    assertIds([order.userId, order.orderId, ...(activeOrderId === undefined ? [] : [activeOrderId])]);
    if (activeOrderId === order.orderId) throw new TypeError('an order cannot be released in favour of itself');
    const { sale, stock, marks } = this.keySpace.saleKeys(partition, order.voucherId);
    const reply = await this.run(RELEASE, [sale, stock, marks], [order.userId, order.orderId, activeOrderId ?? '']);
    switch (reply.word) {
      case 'RELEASED':
      case 'REASSIGNED':
      case 'NOT_HELD':
        return reply.word;
      default:
        throw reply.unknown();
    }
  }

  /** The order that the buyer's mark holds, or undefined. While the epoch is not open a missing mark proves nothing. */
  async readMark(partition: number, voucherId: string, userId: string): Promise<string | undefined> {
    assertIds([userId]);
    const held = await guardKeys(this.connections.command.hget(this.keySpace.marks(partition, voucherId), userId));
    return held ?? undefined;
  }

  /** The orders that the buyers' marks hold, in the order of `userIds` (at most 1,000); undefined where there is no mark. */
  async readMarks(
    partition: number,
    voucherId: string,
    userIds: readonly string[],
  ): Promise<readonly (string | undefined)[]> {
    if (userIds.length === 0) return [];
    if (userIds.length > SCAN_COUNT) throw new TypeError(`at most ${SCAN_COUNT} marks at once`);
    const held = await guardKeys(this.connections.command.hmget(this.keySpace.marks(partition, voucherId), ...userIds));
    return held.map((orderId) => orderId ?? undefined);
  }

  /** The sales as they stand, each at one instant, in the order of `voucherIds`. */
  async readSales(partition: number, voucherIds: readonly string[]): Promise<SaleReading[]> {
    const readings: SaleReading[] = [];
    for (let at = 0; at < voucherIds.length; at += READ_PIECE) {
      const piece = voucherIds.slice(at, at + READ_PIECE);
      const keys = piece.flatMap((voucherId) => {
        const { sale, stock, marks } = this.keySpace.saleKeys(partition, voucherId);
        return [sale, stock, marks];
      });
      const reply = await runScript(this.connections.command, READ_SALES, keys, []);
      if (!Array.isArray(reply) || reply.length !== piece.length) throw new UnknownReplyError(READ_SALES.name, reply);
      piece.forEach((voucherId, index) => readings.push(decodeSale(voucherId, reply[index])));
    }
    return readings;
  }

  /** One sale as it stands. */
  async readSale(partition: number, voucherId: string): Promise<SaleReading> {
    return (await this.readSales(partition, [voucherId]))[0] as SaleReading;
  }

  /** All marks of a voucher, in pieces of about 1,000. A mark that changes during the reading may be seen in either state, or twice. */
  async *scanMarks(partition: number, voucherId: string): AsyncGenerator<readonly Mark[], void, undefined> {
    const key = this.keySpace.marks(partition, voucherId);
    let cursor = '0';
    do {
      const [next, flat] = await guardKeys(this.connections.command.hscan(key, cursor, 'COUNT', SCAN_COUNT));
      cursor = next;
      const marks: Mark[] = [];
      for (let at = 0; at + 1 < flat.length; at += 2) {
        marks.push({ userId: flat[at] as string, orderId: flat[at + 1] as string });
      }
      if (marks.length > 0) yield marks;
    } while (cursor !== '0');
  }

  private async run(lua: LuaScript, keys: readonly string[], args: readonly (string | number)[]): Promise<WordReply> {
    return new WordReply(lua.name, await guardKeys(runScript(this.connections.command, lua, keys, args)));
  }
}

function script(name: string): LuaScript {
  return loadScript(new URL(`./scripts/${name}`, import.meta.url));
}

function assertTerms(terms: SaleTerms): void {
  assertNumbers([terms.beginMs, terms.endMs, terms.units, terms.unitsVersion]);
}

function assertNumbers(numbers: readonly number[]): void {
  if (!numbers.every((number) => Number.isSafeInteger(number) && number >= 0)) {
    throw new TypeError(`times, units and versions are whole numbers from 0 on, not ${numbers.join(', ')}`);
  }
}

function assertIds(ids: readonly string[]): void {
  if (!ids.every(isCanonicalId)) throw new TypeError('an id is not canonical');
}

function decodeSale(voucherId: string, part: unknown): SaleReading {
  if (!Array.isArray(part) || part.length !== 9) throw new UnknownReplyError(READ_SALES.name, part);
  const [begin, end, status, units, unitsVersion, version, stock, marks, cause] = part as unknown[];
  if (typeof cause === 'string') return { kind: 'BROKEN', cause };
  const facts = { beginMs: begin, endMs: end, units, unitsVersion, version, unitsLeft: stock, marks };
  if (
    status === null &&
    marks === 0 &&
    [begin, end, units, unitsVersion, version, stock].every((fact) => fact === null)
  ) {
    return { kind: 'ABSENT' };
  }
  const numbers: Record<string, number> = {};
  for (const [name, value] of Object.entries(facts)) {
    const number = wholeNumber(value);
    if (number === undefined)
      return { kind: 'BROKEN', cause: `${name} is ${value === null ? 'missing' : 'no number'}` };
    numbers[name] = number;
  }
  if (typeof status !== 'string') return { kind: 'BROKEN', cause: 'status is missing' };
  return {
    kind: 'FOUND',
    sale: { voucherId, status, ...(numbers as Record<keyof typeof facts, number>) },
  };
}
