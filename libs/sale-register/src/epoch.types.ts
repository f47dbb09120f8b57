/**
 * Whether a partition may admit. Its key must hold the server's own data history (master_replid).
 * - OPEN: it does. `value` is what repair scripts take as the expected epoch.
 * - CLOSED: the key is missing (`value` undefined) or holds another history.
 * - RECONCILING: someone rebuilds the partition under `token`.
 * - NO_HISTORY: the server has no master_replid. - NO_RIGHT: the user may not ask INFO. Neither heals by a rebuild.
 */
export type EpochState =
  | { readonly kind: 'OPEN'; readonly value: string }
  | { readonly kind: 'CLOSED'; readonly value: string | undefined }
  | { readonly kind: 'RECONCILING'; readonly value: string; readonly token: string; readonly sameServer: boolean }
  | { readonly kind: 'NO_HISTORY' }
  | { readonly kind: 'NO_RIGHT' };

/**
 * BEGUN: `value` is the partition's epoch now, and the expected one of every script of this rebuild; `history` is the server's, in it.
 * CHANGED: the value was not the expected one.
 */
export type EpochBeginOutcome =
  | { readonly kind: 'BEGUN'; readonly value: string; readonly history: string }
  | { readonly kind: 'CHANGED'; readonly value: string | undefined }
  | { readonly kind: 'NO_HISTORY' }
  | { readonly kind: 'NO_RIGHT' };

export type EpochOpenOutcome =
  | { readonly kind: 'OPENED'; readonly value: string }
  /** The value or the server's history is no longer that of this rebuild: start over. */
  | { readonly kind: 'LOST' }
  /** These vouchers lack a key, or are being rebuilt one by one. */
  | { readonly kind: 'INCOMPLETE'; readonly voucherIds: readonly string[] };

/** A wish for a rebuild: of one voucher, or (voucherId undefined) of what the partition's state demands. */
export interface RebuildRequest {
  readonly partition: number;
  readonly voucherId: string | undefined;
  readonly reason: RebuildReason;
}

/** EPOCH: the partition is closed. INCONSISTENT: stock and marks contradict the units. NOT_PUBLISHED: known to the database, not to Redis. */
export type RebuildReason = 'EPOCH' | 'INCONSISTENT' | 'NOT_PUBLISHED';
