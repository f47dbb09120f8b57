import { Inject, Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { SETTINGS, type Settings } from '#config';
import { DatabaseUnavailableError } from '#database';
import { LATE, within } from '#http';
import { guardRedis, RedisConnections, RedisUnavailableError } from '#redis';
import { SaleRegister } from '#sale-register';
import { KnownVouchers } from './known-vouchers.js';
import { VoucherRepository, type SaleWindow, type VoucherRecord } from './voucher.repository.js';
import { voucherView, type LiveSale } from './voucher-view.js';
import type { SaleRecord, VoucherKnowledge, VoucherPage, VoucherView } from './voucher.types.js';

/** Vouchers on one page of a list. */
export const VOUCHER_PAGE_SIZE = 100;
/** Most sales that one call reads. */
export const SALES_PAGE_SIZE = 1_000;

const REMEMBER_MS = 1_000;
const REMEMBERED_VOUCHERS = 10_000;

/** Reads vouchers: the record, with live numbers of the register. */
@Injectable()
export class VoucherReader {
  private readonly remembered = new LRUCache<
    string,
    Promise<{ readonly record: VoucherRecord | undefined; readonly atMs: number }>
  >({ max: REMEMBERED_VOUCHERS, ttl: REMEMBER_MS });

  constructor(
    private readonly vouchers: VoucherRepository,
    private readonly known: KnownVouchers,
    private readonly register: SaleRegister,
    private readonly connections: RedisConnections,
    @Inject(SETTINGS) private readonly settings: Settings,
  ) {}

  /**
   * The voucher with its units left, or undefined where there is none. What seldom changes is remembered for a second, so that a crowd that
   * watches a countdown does not reach the database; units and time are the register's own. @throws DatabaseUnavailableError
   */
  async findVoucher(voucherId: string): Promise<VoucherView | undefined> {
    const record = await this.inTime(this.recent(voucherId));
    if (record === undefined) return undefined;
    const live = await this.liveSales([record.sale]);
    return voucherView(record, live.get(voucherId));
  }

  /** Forgets what is remembered of the voucher: it was made or changed just now. */
  forget(voucherId: string): void {
    this.remembered.delete(voucherId);
    this.known.forget(voucherId);
  }

  /** The vouchers of a shop, newest first, at most `VOUCHER_PAGE_SIZE`; `cursor` is the one of the page before. @throws DatabaseUnavailableError */
  async listVouchers(shopId: string, cursor?: string): Promise<VoucherPage> {
    const records = await this.inTime(this.vouchers.listByShop(shopId, cursor, VOUCHER_PAGE_SIZE + 1));
    const shown = records.slice(0, VOUCHER_PAGE_SIZE);
    const live = await this.liveSales(shown.map(({ sale }) => sale));
    const items = shown.map((record: VoucherRecord) => voucherView(record, live.get(record.sale.voucherId)));
    const last = shown.at(-1);
    return records.length > shown.length && last !== undefined ? { items, nextCursor: last.sale.voucherId } : { items };
  }

  /** Whether the voucher exists by the record, within `timeoutMs`; remembered for a second. Never rejects. */
  knowsVoucher(voucherId: string, timeoutMs: number): Promise<VoucherKnowledge> {
    return this.known.look(voucherId, timeoutMs);
  }

  /** What the record states about one sale. @throws DatabaseUnavailableError */
  async findSale(voucherId: string): Promise<SaleRecord | undefined> {
    return (await this.vouchers.find(voucherId))?.sale;
  }

  /**
   * A page of a partition's sales, ascending by voucher id behind `afterId`; fewer than `limit` (1..1,000) on the last page. `window` is taken by
   * the database's clock. @throws DatabaseUnavailableError
   */
  listSales(partition: number, window: SaleWindow, afterId = '0', limit = SALES_PAGE_SIZE): Promise<SaleRecord[]> {
    return this.vouchers.sales(partition, window, afterId, Math.min(Math.max(limit, 1), SALES_PAGE_SIZE));
  }

  /** What the register says of each of the sales that it can speak for. Empty while Redis is away. */
  async liveSales(sales: readonly SaleRecord[]): Promise<Map<string, LiveSale>> {
    const live = new Map<string, LiveSale>();
    const partitions = new Map<number, SaleRecord[]>();
    for (const sale of sales) {
      const group = partitions.get(sale.partition);
      if (group === undefined) partitions.set(sale.partition, [sale]);
      else group.push(sale);
    }
    await Promise.all(
      [...partitions].map(async ([partition, group]) => {
        for (const [voucherId, sale] of await this.livePartition(partition, group)) live.set(voucherId, sale);
      }),
    );
    return live;
  }

  private async livePartition(partition: number, sales: readonly SaleRecord[]): Promise<Map<string, LiveSale>> {
    try {
      const ids = sales.map(({ voucherId }) => voucherId);
      const [nowMs, readings] = await Promise.all([this.registerClock(), this.register.readSales(partition, ids)]);
      const live = new Map<string, LiveSale>();
      for (const reading of readings) {
        // A sale under rebuild is half written: the record speaks for it.
        if (reading.kind !== 'FOUND' || reading.sale.status !== 'open') continue;
        live.set(reading.sale.voucherId, { units: reading.sale.units, unitsLeft: reading.sale.unitsLeft, nowMs });
      }
      return live;
    } catch (error) {
      if (!(error instanceof RedisUnavailableError)) throw error;
      return new Map();
    }
  }

  /** The record as it was read within the last second; calls at the same time share one reading. */
  private async recent(voucherId: string): Promise<VoucherRecord | undefined> {
    let reading = this.remembered.get(voucherId);
    if (reading === undefined) {
      const read = this.vouchers.find(voucherId).then((record) => ({ record, atMs: performance.now() }));
      this.remembered.set(voucherId, read);
      read.catch(() => {
        if (this.remembered.peek(voucherId) === read) this.remembered.delete(voucherId);
      });
      reading = read;
    }
    const { record, atMs } = await reading;
    return record && { ...record, nowMs: Math.floor(record.nowMs + performance.now() - atMs) };
  }

  /** A frozen database is as good as none: who asks is answered before the request's deadline. */
  private async inTime<T>(reading: Promise<T>): Promise<T> {
    const limitMs = this.settings.http.requestTimeoutMs / 2;
    const value = await within(reading, limitMs);
    if (value === LATE) throw new DatabaseUnavailableError(`no answer within ${limitMs} ms`);
    return value;
  }

  /** The clock that decides when a sale begins and ends. Unix milliseconds. */
  private async registerClock(): Promise<number> {
    const [seconds, microseconds] = await guardRedis(this.connections.command.time());
    return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
  }
}
