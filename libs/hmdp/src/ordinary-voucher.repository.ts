import { Injectable } from '@nestjs/common';
import { Database } from '#database';
import type { NewOrdinaryVoucher } from './new-voucher.js';

/** What the list of a shop needs beyond the sales: ordinary vouchers, and which sales were taken off the shelf. */
export interface Shelf {
  readonly ordinary: readonly OrdinaryVoucher[];
  readonly offShelf: ReadonlySet<string>;
}

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
  readonly on_shelf: boolean;
}

const INSERT = {
  name: 'hmdp_voucher_insert',
  text: `INSERT INTO tb_voucher (shop_id, title, sub_title, rules, pay_value, actual_value, type)
         VALUES ($1, $2, $3, $4, $5, $6, 0) RETURNING id`,
};
const SHELF = {
  name: 'hmdp_shelf',
  text: `SELECT v.id, v.title, v.sub_title, v.rules, v.pay_value, v.actual_value, v.status = 1 AS on_shelf
         FROM tb_voucher v LEFT JOIN tb_seckill_voucher s ON s.voucher_id = v.id
         WHERE v.shop_id = $1 AND (s.voucher_id IS NULL) = (v.status = 1)
         ORDER BY v.id DESC LIMIT $2`,
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

  /** The shelf of a shop, the newest `limit` of both kinds together. */
  async shelf(shopId: string, limit: number): Promise<Shelf> {
    const rows = await this.database.query<Row>(SHELF, [shopId, limit]);
    return {
      ordinary: rows.filter(({ on_shelf }) => on_shelf).map(ordinaryVoucher),
      offShelf: new Set(rows.filter(({ on_shelf }) => !on_shelf).map(({ id }) => id)),
    };
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
