import { Injectable } from '@nestjs/common';
import { Database, type Session } from '#database';
import type { NewVoucher, SaleRecord } from './voucher.types.js';

/** One voucher with its sale as the database states it at `nowMs` (the database's clock). Times in Unix milliseconds. */
export interface VoucherRecord {
  readonly sale: SaleRecord;
  readonly shopId: string | undefined;
  readonly title: string;
  readonly subTitle: string | undefined;
  readonly rules: string | undefined;
  readonly payValue: number;
  readonly actualValue: number;
  readonly nowMs: number;
}

/** Which sales of a partition: those whose window has not ended by the database's clock, those whose window has, or both. */
export type SaleWindow = 'OPEN' | 'ENDED' | 'ALL';

interface SaleRow {
  readonly voucher_id: string;
  readonly stock: number;
  readonly units: number;
  readonly units_version: string;
  readonly partition_id: number;
  readonly begin_time: Date;
  readonly end_time: Date;
}

interface VoucherRow extends SaleRow {
  readonly shop_id: string | null;
  readonly title: string;
  readonly sub_title: string | null;
  readonly rules: string | null;
  readonly pay_value: string;
  readonly actual_value: string;
  readonly now: Date;
}

const SALE_COLUMNS =
  's.voucher_id, s.stock, s.units, s.units_version, s.partition_id, s.begin_time, s.end_time' as const;
const VOUCHER_COLUMNS =
  `${SALE_COLUMNS}, v.shop_id, v.title, v.sub_title, v.rules, v.pay_value, v.actual_value, clock_timestamp() AS now` as const;
const FROM_VOUCHER = 'FROM tb_seckill_voucher s JOIN tb_voucher v ON v.id = s.voucher_id' as const;

const FIND = { name: 'voucher_find', text: `SELECT ${VOUCHER_COLUMNS} ${FROM_VOUCHER} WHERE s.voucher_id = $1` };
const LOCK = { name: 'voucher_lock', text: `${FIND.text} FOR UPDATE OF s` };
const LIST = {
  name: 'voucher_list',
  text: `SELECT ${VOUCHER_COLUMNS} ${FROM_VOUCHER}
         WHERE v.shop_id = $1 AND ($2::bigint IS NULL OR v.id < $2) ORDER BY v.id DESC LIMIT $3`,
};
const PARTITIONS = {
  name: 'voucher_partitions',
  text: 'SELECT voucher_id, partition_id FROM tb_seckill_voucher WHERE voucher_id = ANY ($1::bigint[])',
};
const SALES = {
  name: 'voucher_sales',
  text: `SELECT ${SALE_COLUMNS} FROM tb_seckill_voucher s
         WHERE s.partition_id = $1 AND s.voucher_id > $2
           AND ($3 = 'ALL' OR (s.end_time > clock_timestamp()) = ($3 = 'OPEN'))
         ORDER BY s.voucher_id LIMIT $4`,
};
// One statement: both rows, the partition, and the row as it was stored. The partition of an id is fixed here, once.
const INSERT = {
  name: 'voucher_insert',
  text: `WITH v AS (
           INSERT INTO tb_voucher (shop_id, title, sub_title, rules, pay_value, actual_value, type)
           VALUES ($1, $2, $3, $4, $5, $6, 1) RETURNING *
         ), s AS (
           INSERT INTO tb_seckill_voucher (voucher_id, stock, units, units_version, partition_id, begin_time, end_time)
           SELECT v.id, $7, $7, 1, (v.id % $8::integer)::integer, $9, $10 FROM v RETURNING *
         ), p AS (
           INSERT INTO tb_partition (partition_id) SELECT s.partition_id FROM s ON CONFLICT DO NOTHING
         )
         SELECT ${VOUCHER_COLUMNS} FROM s JOIN v ON v.id = s.voucher_id`,
};
const CHANGE_UNITS = {
  name: 'voucher_change_units',
  text: `UPDATE tb_seckill_voucher SET units = $2, stock = $3, units_version = $4, update_time = now() WHERE voucher_id = $1`,
};

/** The rows of vouchers and their sales. Every call throws DatabaseUnavailableError while the database is away. */
@Injectable()
export class VoucherRepository {
  constructor(private readonly database: Database) {}

  async find(voucherId: string): Promise<VoucherRecord | undefined> {
    const [row] = await this.database.query<VoucherRow>(FIND, [voucherId]);
    return row && voucherRecord(row);
  }

  /** Newest first; `beforeId` is the last id of the page before. */
  async listByShop(shopId: string, beforeId: string | undefined, limit: number): Promise<VoucherRecord[]> {
    const rows = await this.database.query<VoucherRow>(LIST, [shopId, beforeId ?? null, limit]);
    return rows.map(voucherRecord);
  }

  /** The partitions of those of the vouchers that exist. */
  async partitionsOf(voucherIds: readonly string[]): Promise<Map<string, number>> {
    const rows = await this.database.query<Pick<SaleRow, 'voucher_id' | 'partition_id'>>(PARTITIONS, [voucherIds]);
    return new Map(rows.map((row) => [row.voucher_id, row.partition_id]));
  }

  /** A page of a partition's sales, ascending by id behind `afterId` ('0' at the begin). */
  async sales(partition: number, window: SaleWindow, afterId: string, limit: number): Promise<SaleRecord[]> {
    const rows = await this.database.query<SaleRow>(SALES, [partition, afterId, window, limit]);
    return rows.map(saleRecord);
  }

  /** Stores a new voucher, its sale and its partition (id mod `partitions`). */
  async insert(session: Session, voucher: NewVoucher, partitions: number): Promise<VoucherRecord> {
    const [row] = await session.query<VoucherRow>(INSERT, [
      voucher.shopId,
      voucher.title,
      voucher.subTitle ?? null,
      voucher.rules ?? null,
      voucher.payValue,
      voucher.actualValue,
      voucher.stock,
      partitions,
      new Date(voucher.beginMs).toISOString(),
      new Date(voucher.endMs).toISOString(),
    ]);
    if (row === undefined) throw new Error('a voucher was inserted and not returned');
    return voucherRecord(row);
  }

  /** Reads the voucher and holds the row of its sale until the transaction ends. Waits for it as long as `lock_timeout`. */
  async lock(session: Session, voucherId: string): Promise<VoucherRecord | undefined> {
    const [row] = await session.query<VoucherRow>(LOCK, [voucherId]);
    return row && voucherRecord(row);
  }

  /** Writes units, stock and version of a sale whose row is held. */
  async changeUnits(
    session: Session,
    { voucherId, units, stock, unitsVersion }: Pick<SaleRecord, 'voucherId' | 'units' | 'stock' | 'unitsVersion'>,
  ): Promise<void> {
    await session.query(CHANGE_UNITS, [voucherId, units, stock, unitsVersion]);
  }
}

function saleRecord(row: SaleRow): SaleRecord {
  return {
    voucherId: row.voucher_id,
    partition: row.partition_id,
    stock: row.stock,
    units: row.units,
    unitsVersion: Number(row.units_version),
    beginMs: row.begin_time.getTime(),
    endMs: row.end_time.getTime(),
  };
}

function voucherRecord(row: VoucherRow): VoucherRecord {
  return {
    sale: saleRecord(row),
    shopId: row.shop_id ?? undefined,
    title: row.title,
    subTitle: row.sub_title ?? undefined,
    rules: row.rules ?? undefined,
    payValue: Number(row.pay_value),
    actualValue: Number(row.actual_value),
    nowMs: row.now.getTime(),
  };
}
