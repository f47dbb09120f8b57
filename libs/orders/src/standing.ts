import type { OrderEntry } from '#order-stream';
import { ORDER_STATUS, type OrderResult, type RejectionReason } from './order.types.js';
import type { LookUpRow } from './order-statements.js';

/** What the record says of an order that was not inserted. SETTLED: by id. OTHER_ORDER: unknown id, and the buyer has another active order. */
export type Standing =
  | { readonly kind: 'SETTLED'; readonly result: OrderResult }
  | { readonly kind: 'OTHER_ORDER'; readonly activeOrderId: string }
  | { readonly kind: 'UNKNOWN_VOUCHER' }
  /** Neither a row nor a reason: something changed meanwhile, or the table dropped the row silently. */
  | { readonly kind: 'NOTHING' };

/** Decides by id first, so that an order that is sent again finds itself and not its buyer's other order. Pure. */
export function standingOf(order: OrderEntry, row: LookUpRow): Standing {
  if (row.order_user_id !== null) {
    if (row.order_user_id !== order.userId || row.order_voucher_id !== order.voucherId) return settled('FOREIGN_ID');
    return byStatus(row);
  }
  if (row.rejected_user_id !== null) {
    if (row.rejected_user_id !== order.userId || row.rejected_voucher_id !== order.voucherId) {
      return settled('FOREIGN_ID');
    }
    return { kind: 'SETTLED', result: rejected(row.rejected_reason, row.rejected_active_order_id) };
  }
  if (!row.voucher_known) return { kind: 'UNKNOWN_VOUCHER' };
  if (row.other_order_id !== null) return { kind: 'OTHER_ORDER', activeOrderId: row.other_order_id };
  return { kind: 'NOTHING' };
}

function byStatus(row: LookUpRow): Standing {
  switch (row.status) {
    case ORDER_STATUS.REJECTED:
      return { kind: 'SETTLED', result: rejected(row.reason, row.active_order_id) };
    case ORDER_STATUS.CANCELLED:
    case ORDER_STATUS.REFUNDED:
      return settled('ALREADY_CANCELLED');
    default:
      return settled('ALREADY_STORED');
  }
}

function settled(kind: 'FOREIGN_ID' | 'ALREADY_CANCELLED' | 'ALREADY_STORED'): Standing {
  return { kind: 'SETTLED', result: { kind } };
}

/** A rejection as the consumer hears it. A row that was set to rejected by hand has no reason of ours: the general one is given. */
export function rejected(reason: string | null, activeOrderId: string | null): OrderResult {
  const known = (reason ?? 'REFUSED_BY_DATABASE') as RejectionReason;
  return activeOrderId === null
    ? { kind: 'REJECTED', reason: known }
    : { kind: 'REJECTED', reason: known, activeOrderId };
}
