import { formatIsoTime } from '#http';
import type { VoucherRecord } from './voucher.repository.js';
import type { SaleRecord, VoucherStatus, VoucherView } from './voucher.types.js';

/** What the register says about a sale at one instant of its clock. */
export interface LiveSale {
  /** Units offered. */
  readonly units: number;
  readonly unitsLeft: number;
  readonly nowMs: number;
}

/** The voucher as people see it: units and time from the register, from the database where the register cannot say. */
export function voucherView(record: VoucherRecord, live?: LiveSale): VoucherView {
  const { sale } = record;
  const unitsLeft = Math.max(0, live?.unitsLeft ?? sale.stock);
  const nowMs = live?.nowMs ?? record.nowMs;
  return {
    voucherId: sale.voucherId,
    ...(record.shopId === undefined ? {} : { shopId: record.shopId }),
    title: record.title,
    ...(record.subTitle === undefined ? {} : { subTitle: record.subTitle }),
    ...(record.rules === undefined ? {} : { rules: record.rules }),
    payValue: record.payValue,
    actualValue: record.actualValue,
    stock: live?.units ?? sale.units,
    unitsLeft,
    beginTime: formatIsoTime(sale.beginMs),
    endTime: formatIsoTime(sale.endMs),
    status: voucherStatus(sale, unitsLeft, nowMs),
    serverTime: formatIsoTime(nowMs),
  };
}

/** The window is half open: at `beginMs` the sale is on, at `endMs` it is over. */
export function voucherStatus(
  { beginMs, endMs }: Pick<SaleRecord, 'beginMs' | 'endMs'>,
  unitsLeft: number,
  nowMs: number,
): VoucherStatus {
  if (nowMs < beginMs) return 'NOT_STARTED';
  if (nowMs >= endMs) return 'ENDED';
  return unitsLeft > 0 ? 'ON_SALE' : 'SOLD_OUT';
}

const MEMBERS: readonly (keyof VoucherView)[] = [
  'voucherId',
  'shopId',
  'title',
  'subTitle',
  'rules',
  'payValue',
  'actualValue',
  'stock',
  'unitsLeft',
  'beginTime',
  'endTime',
  'status',
  'serverTime',
];

/** A stored answer with its members in the usual order (jsonb keeps none): the repeated answer equals the first one byte by byte. */
export function inUsualOrder(view: VoucherView): VoucherView {
  return Object.fromEntries(
    MEMBERS.filter((member) => view[member] !== undefined).map((member) => [member, view[member]]),
  ) as unknown as VoucherView;
}
