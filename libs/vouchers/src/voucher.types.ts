import type { SaleTerms } from '#sale-register';

/** Where a sale stands by the server's clock. NOT_STARTED and ENDED win over SOLD_OUT, as they do for a purchase. */
export type VoucherStatus = 'NOT_STARTED' | 'ON_SALE' | 'SOLD_OUT' | 'ENDED';

/** A voucher as people see it. Ids are decimal strings, values are cents, times ISO 8601 UTC. */
export interface VoucherView {
  readonly voucherId: string;
  /** Absent where the row, made outside this service, names no shop. */
  readonly shopId?: string;
  readonly title: string;
  readonly subTitle?: string;
  readonly rules?: string;
  readonly payValue: number;
  readonly actualValue: number;
  /** Units offered. */
  readonly stock: number;
  /** Units free to buy: by the register, or by the database where the register cannot say. Never below 0. */
  readonly unitsLeft: number;
  readonly beginTime: string;
  readonly endTime: string;
  readonly status: VoucherStatus;
  readonly serverTime: string;
}

/** One page of a list; `nextCursor` is absent on the last page. */
export interface VoucherPage {
  readonly items: readonly VoucherView[];
  readonly nextCursor?: string;
}

/** What the database states about one sale: its terms, its partition, and the units that no stored order holds. */
export interface SaleRecord extends SaleTerms {
  readonly partition: number;
  readonly stock: number;
}

/** A voucher to be made, checked. Times in Unix milliseconds. */
export interface NewVoucher {
  readonly shopId: string;
  readonly title: string;
  readonly subTitle?: string;
  readonly rules?: string;
  readonly payValue: number;
  readonly actualValue: number;
  readonly stock: number;
  readonly beginMs: number;
  readonly endMs: number;
}

/** Whether a voucher exists by the record. UNDECIDED: the database did not say in time. */
export type VoucherKnowledge =
  | { readonly kind: 'KNOWN'; readonly partition: number }
  | { readonly kind: 'UNKNOWN' }
  | { readonly kind: 'UNDECIDED' };

/** Limits of a voucher (public contract). */
export const VOUCHER_LIMITS = {
  units: 10_000_000,
  cents: 1_000_000_000_000,
  titleLength: 255,
  subTitleLength: 255,
  rulesLength: 1024,
} as const;
