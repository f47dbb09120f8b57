import { Injectable } from '@nestjs/common';
import { Database } from '#database';
import type { NewOrdinaryVoucher } from './new-voucher.js';

export interface OrdinaryVoucher {
  readonly id: string;
  readonly title: string;
  readonly subTitle: string | null;
  readonly rules: string | null;
  readonly payValue: number;
  readonly actualValue: number;
}

interface Row {
  readonly id: string;
  readonly title: string;
  readonly sub_title: string | null;
  readonly rules: string | null;
  readonly pay_value: string;
  readonly actual_value: string;
}

const INSERT = {
  name: 'hmdp_voucher_insert',
  text: `INSERT INTO tb_voucher (shop_id, title, sub_title, rules, pay_value, actual_value, type)
         VALUES ($1, $2, $3, $4, $5, $6, 0) RETURNING id`,
};
const LIST = {
  name: 'hmdp_voucher_list',
  text: `SELECT v.id, v.title, v.sub_title, v.rules, v.pay_value, v.actual_value
         FROM tb_voucher v LEFT JOIN tb_seckill_voucher s ON s.voucher_id = v.id
         WHERE v.shop_id = $1 AND v.status = 1 AND s.voucher_id IS NULL ORDER BY v.id DESC LIMIT $2`,
};
const OFF_SHELF = {
  name: 'hmdp_voucher_off_shelf',
  text: 'SELECT id FROM tb_voucher WHERE id = ANY ($1::bigint[]) AND status <> 1',
};

/** Vouchers without a sale, which only hmdp's clients know. Every call throws DatabaseUnavailableError while the database is away. */
@Injectable()
export class OrdinaryVoucherRepository {
  constructor(private readonly database: Database) {}

  /** Stores the voucher and answers its id. */
  async insert(voucher: NewOrdinaryVoucher): Promise<string> {
    const { shopId, title, subTitle, rules, payValue, actualValue } = voucher;
    const values = [shopId, title, subTitle ?? null, rules ?? null, payValue, actualValue];
    const [row] = await this.database.query<{ id: string }>(INSERT, values);
    if (row === undefined) throw new Error('a voucher was inserted and not returned');
    return row.id;
  }

  /** Those of a shop that are on the shelf, newest first. */
  async list(shopId: string, limit: number): Promise<OrdinaryVoucher[]> {
    return (await this.database.query<Row>(LIST, [shopId, limit])).map(ordinaryVoucher);
  }

  /** Which of the vouchers, with or without a sale, were taken off the shelf. */
  async offShelf(voucherIds: readonly string[]): Promise<ReadonlySet<string>> {
    if (voucherIds.length === 0) return new Set();
    const rows = await this.database.query<{ id: string }>(OFF_SHELF, [voucherIds]);
    return new Set(rows.map(({ id }) => id));
  }
}

function ordinaryVoucher(row: Row): OrdinaryVoucher {
  return {
    id: row.id,
    title: row.title,
    subTitle: row.sub_title,
    rules: row.rules,
    payValue: Number(row.pay_value),
    actualValue: Number(row.actual_value),
  };
}
