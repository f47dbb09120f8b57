import { Injectable } from '@nestjs/common';
import { Database, type EntityManager } from '#database';
import { StockLedgerEntry } from './entities.js';

/** What kind of thing happened to the units of a voucher. */
export type LedgerKind = 'PUBLICATION' | 'RESTOCK' | 'REBUILD' | 'REJECTION' | 'RELEASE' | 'REPAIR';

/** `before` and `after`: the number that was changed, where one was. `actor`: who did it, a user (`user:1`) or a part of the product. */
export interface NewLedgerEntry {
  readonly kind: LedgerKind;
  readonly voucherId: string;
  readonly orderId?: string;
  readonly before?: number;
  readonly after?: number;
  readonly reason: string;
  readonly actor: string;
}

export interface LedgerEntry extends NewLedgerEntry {
  readonly id: string;
  /** ISO 8601, UTC. */
  readonly createTime: string;
}

const LONGEST_REASON = 1_024;
const LONGEST_ACTOR = 128;
/** Most lines that one insert or one answer carries. */
const PAGE_SIZE = 1_000;

/** The record of every publication, restock, rejection, release and repair. Lines are only ever added. */
@Injectable()
export class StockLedger {
  constructor(private readonly database: Database) {}

  /** Adds lines within the caller's transaction, so that they stand or fall with what they describe. */
  async append(manager: EntityManager, ...entries: readonly NewLedgerEntry[]): Promise<void> {
    for (let start = 0; start < entries.length; start += PAGE_SIZE) {
      await manager.insert(StockLedgerEntry, entries.slice(start, start + PAGE_SIZE).map(toRow));
    }
  }

  /** Adds lines in a transaction of their own: for what happened in Redis alone. @throws DatabaseUnavailableError */
  async note(...entries: readonly NewLedgerEntry[]): Promise<void> {
    await this.database.transaction((manager) => this.append(manager, ...entries));
  }

  /** The lines of one voucher, oldest first, behind the line `afterId`; at most `limit` (1..1,000). @throws DatabaseUnavailableError */
  async list(voucherId: string, afterId = '0', limit = PAGE_SIZE): Promise<LedgerEntry[]> {
    const rows = await this.database.run((manager) =>
      manager
        .createQueryBuilder(StockLedgerEntry, 'line')
        .where('line.voucherId = :voucherId AND line.id > :afterId', { voucherId, afterId })
        .orderBy('line.id')
        .take(Math.min(Math.max(limit, 1), PAGE_SIZE))
        .getMany(),
    );
    return rows.map(toEntry);
  }
}

function toRow(entry: NewLedgerEntry): Partial<StockLedgerEntry> {
  return {
    kind: entry.kind,
    voucherId: entry.voucherId,
    orderId: entry.orderId ?? null,
    before: entry.before?.toString() ?? null,
    after: entry.after?.toString() ?? null,
    reason: entry.reason.slice(0, LONGEST_REASON),
    actor: entry.actor.slice(0, LONGEST_ACTOR),
  };
}

function toEntry(row: StockLedgerEntry): LedgerEntry {
  return {
    id: row.id,
    kind: row.kind as LedgerKind,
    voucherId: row.voucherId,
    ...(row.orderId === null ? {} : { orderId: row.orderId }),
    ...(row.before === null ? {} : { before: Number(row.before) }),
    ...(row.after === null ? {} : { after: Number(row.after) }),
    reason: row.reason,
    actor: row.actor,
    createTime: row.createTime.toISOString(),
  };
}
