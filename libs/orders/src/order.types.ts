import type { OrderEntry } from '#order-stream';

/** The numbers of the status column. */
export const ORDER_STATUS = {
  UNPAID: 1,
  PAID: 2,
  USED: 3,
  CANCELLED: 4,
  REFUNDING: 5,
  REFUNDED: 6,
  REJECTED: 7,
} as const;
export type StoredStatus = keyof typeof ORDER_STATUS;
export type OrderStatus = StoredStatus | 'QUEUED';

/** Stable words for why an order was rejected; buyers see them as `reason`. */
export type RejectionReason = 'NO_UNITS' | 'OTHER_ACTIVE_ORDER' | 'REFUSED_BY_DATABASE' | 'DISCARDED' | 'LOST_RIGHT';

/** An entry on its way into the table. `acceptedAtMs` (Unix milliseconds, from the entry's id) becomes create_time. */
export interface NewOrder extends OrderEntry {
  readonly acceptedAtMs: number;
}

/** Orders read from one partition's stream under one epoch number (design: the fence). */
export interface OrderBatch {
  readonly partition: number;
  readonly epochNumber: number;
  readonly orders: readonly NewOrder[];
}

/** What became of one order of the batch. */
export type OrderResult =
  | { readonly kind: 'STORED' | 'ALREADY_STORED' | 'ALREADY_CANCELLED' }
  /** A durable rejection stands (made now or before): release, or reassign the mark to `activeOrderId` where given; then acknowledge. */
  | { readonly kind: 'REJECTED'; readonly reason: RejectionReason; readonly activeOrderId?: string }
  /** Could not be decided now (a row or the buyer's lock is held by somebody else): leave the entry pending and try it again later. */
  | { readonly kind: 'DEFERRED' }
  /** No order at all: the id belongs to another buyer or voucher, or the voucher is unknown. Dead letter. */
  | { readonly kind: 'FOREIGN_ID' | 'UNKNOWN_VOUCHER' };

/** `results` stand in the order of the batch. STALE_EPOCH: nothing was stored; read the entries again under `epochNumber`. */
export type BatchOutcome =
  | { readonly kind: 'DONE'; readonly results: readonly OrderResult[] }
  | { readonly kind: 'STALE_EPOCH'; readonly epochNumber: number };

/** An order that is to be rejected; `acceptedAtMs` as in NewOrder, now where it is not known. */
export interface OrderToReject extends OrderEntry {
  readonly acceptedAtMs?: number;
}

/** A stored order as its buyer sees it. Times are ISO 8601, UTC. */
export interface OrderView {
  readonly orderId: string;
  readonly voucherId: string;
  readonly userId: string;
  readonly status: OrderStatus;
  readonly reason?: string;
  readonly payType?: number;
  readonly createTime: string;
  readonly payTime?: string;
  readonly useTime?: string;
  readonly refundTime?: string;
  readonly updateTime: string;
}
