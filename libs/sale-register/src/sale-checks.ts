import { Injectable } from '@nestjs/common';
import { loadScript, RedisConnections, runScript } from '#redis';
import { KeySpace } from './key-space.js';
import { UnknownReplyError, wholeNumber } from './reply.js';

const CHECK_SALES = loadScript(new URL('./scripts/check-sales.lua', import.meta.url));

/** What a refusal rests on, as one look found it. Times in Unix milliseconds by Redis' clock. */
export interface CheckedSale {
  readonly beginMs: number;
  readonly endMs: number;
  readonly unitsLeft: number;
  readonly marks: number;
  /** Together with the history it names the state: under the same two, no unit was freed or added, no mark set from outside, no window moved. */
  readonly version: number;
}

/** One look at sales of a partition. CLOSED: nothing may be remembered of it. `sales` stand in the order asked, undefined where a sale is not open. */
export type SaleCheck =
  | { readonly kind: 'CLOSED' }
  | {
      readonly kind: 'OPEN';
      readonly history: string;
      readonly serverMs: number;
      readonly sales: readonly (CheckedSale | undefined)[];
    };

/** Looks and listens for whoever remembers refusals. */
@Injectable()
export class SaleChecks {
  constructor(
    private readonly connections: RedisConnections,
    private readonly keySpace: KeySpace,
  ) {}

  /** Looks at the sales at one instant. Throws RedisUnavailableError for passing trouble. */
  async check(partition: number, voucherIds: readonly string[]): Promise<SaleCheck> {
    const keys = [this.keySpace.epoch(partition)];
    for (const voucherId of voucherIds) {
      const { sale, stock, marks } = this.keySpace.saleKeys(partition, voucherId);
      keys.push(sale, stock, marks);
    }
    const reply = await runScript(this.connections.command, CHECK_SALES, keys, []);
    if (!Array.isArray(reply)) throw new UnknownReplyError(CHECK_SALES.name, reply);
    const [history, now, ...sales] = reply as unknown[];
    if (history === null) return { kind: 'CLOSED' };
    const serverMs = wholeNumber(now);
    if (typeof history !== 'string' || serverMs === undefined || sales.length !== voucherIds.length) {
      throw new UnknownReplyError(CHECK_SALES.name, reply);
    }
    return { kind: 'OPEN', history, serverMs, sales: sales.map(decode) };
  }

  /** The channel on which every change that may end a refusal of this voucher is told at once. */
  channelOf(partition: number, voucherId: string): string {
    return this.keySpace.sale(partition, voucherId);
  }
}

function decode(part: unknown): CheckedSale | undefined {
  if (part === null) return undefined;
  if (!Array.isArray(part) || part.length !== 5) throw new UnknownReplyError(CHECK_SALES.name, part);
  const [beginMs, endMs, unitsLeft, marks, version] = part.map(wholeNumber);
  if (
    beginMs === undefined ||
    endMs === undefined ||
    unitsLeft === undefined ||
    marks === undefined ||
    version === undefined
  ) {
    throw new UnknownReplyError(CHECK_SALES.name, part);
  }
  return { beginMs, endMs, unitsLeft, marks, version };
}
