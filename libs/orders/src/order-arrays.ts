import type { NewOrder } from './order.types.js';

/** A bigint[] or float8[] literal for one column of a batch: one string instead of an escaped element per order. */
export function arrayLiteral(values: readonly (string | number | null)[]): string {
  return `{${values.map((value) => value ?? 'NULL').join(',')}}`;
}

/** The literals of a batch, column by column. */
export interface OrderArrays {
  readonly ids: string;
  readonly users: string;
  readonly vouchers: string;
  readonly acceptedMs: string;
}

const ONLY_IDS = /^\{[1-9]\d{0,18}(,[1-9]\d{0,18})*\}$/;
const ONLY_TIMES = /^\{\d{1,16}(\.\d+)?(,\d{1,16}(\.\d+)?)*\}$/;

/**
 * Turns a batch into literals.
 * @throws TypeError where an id is no decimal string or a time no number: those were checked where they entered, so it is a defect.
 */
export function orderArrays(orders: readonly NewOrder[]): OrderArrays {
  let ids = '{';
  let users = '{';
  let vouchers = '{';
  let acceptedMs = '{';
  let comma = '';
  for (const order of orders) {
    ids += comma + order.orderId;
    users += comma + order.userId;
    vouchers += comma + order.voucherId;
    acceptedMs += comma + String(order.acceptedAtMs);
    comma = ',';
  }
  const arrays = { ids: `${ids}}`, users: `${users}}`, vouchers: `${vouchers}}`, acceptedMs: `${acceptedMs}}` };
  if (!ONLY_IDS.test(arrays.ids) || !ONLY_IDS.test(arrays.users) || !ONLY_IDS.test(arrays.vouchers)) {
    throw new TypeError('an order of the batch has an id that is no decimal string');
  }
  if (!ONLY_TIMES.test(arrays.acceptedMs)) throw new TypeError('an order of the batch has no time of acceptance');
  return arrays;
}
