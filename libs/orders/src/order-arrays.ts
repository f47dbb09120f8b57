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

/**
 * Turns a batch into literals.
 * @throws TypeError where an id is no decimal string or a time no number: those were checked where they entered, so it is a defect.
 */
export function orderArrays(orders: readonly NewOrder[]): OrderArrays {
  let ids = '';
  let users = '';
  let vouchers = '';
  let acceptedMs = '';
  let comma = '';
  for (const order of orders) {
    if (!isDecimal(order.orderId) || !isDecimal(order.userId) || !isDecimal(order.voucherId)) {
      throw new TypeError('an order of the batch has an id that is no decimal string');
    }
    if (!(order.acceptedAtMs >= 0 && order.acceptedAtMs <= Number.MAX_SAFE_INTEGER)) {
      throw new TypeError('an order of the batch has no time of acceptance');
    }
    ids += comma + order.orderId;
    users += comma + order.userId;
    vouchers += comma + order.voucherId;
    acceptedMs += comma + String(order.acceptedAtMs);
    comma = ',';
  }
  return { ids: `{${ids}}`, users: `{${users}}`, vouchers: `{${vouchers}}`, acceptedMs: `{${acceptedMs}}` };
}

const ZERO = 48;
const NINE = 57;
const LONGEST_ID = 19;

/** Digits without a leading zero. A loop over the characters: a pattern costs ten times as much, three times per order. */
function isDecimal(id: string): boolean {
  if (id.length === 0 || id.length > LONGEST_ID || id.charCodeAt(0) === ZERO) return false;
  for (let index = 0; index < id.length; index += 1) {
    const code = id.charCodeAt(index);
    if (code < ZERO || code > NINE) return false;
  }
  return true;
}
