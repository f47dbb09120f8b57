/** What a guarded script found of the epoch instead of doing its work: LOST = the value is no longer the expected one, or the server's data history is another. */
export interface GuardLost {
  readonly kind: 'LOST';
}

export type ReappendOutcome =
  | { readonly kind: 'APPENDED'; readonly entryId: string }
  /** The mark does not hold this order (any more). */
  | { readonly kind: 'NOT_HELD' }
  | GuardLost;

export type MarkOutcome =
  /** `unitsLeft` may be below 0. */
  | { readonly kind: 'MARKED'; readonly unitsLeft: number }
  /** The buyer has a mark already, with this order. */
  | { readonly kind: 'HELD'; readonly orderId: string }
  | { readonly kind: 'NOT_PUBLISHED' }
  | GuardLost;

export type RemarkOutcome =
  { readonly kind: 'REMARKED' } | { readonly kind: 'CHANGED'; readonly orderId: string | undefined } | GuardLost;

export type CorrectStockOutcome =
  | { readonly kind: 'CORRECTED'; readonly before: number; readonly after: number }
  /** The difference is no longer the expected one: it is this now (0: nothing to correct). */
  | { readonly kind: 'CHANGED'; readonly difference: number }
  | { readonly kind: 'NOT_PUBLISHED' }
  | GuardLost;

export type ReadmitOutcome =
  /** Mark, unit and entry are there (the mark may have been before). */
  | { readonly kind: 'READMITTED'; readonly entryId: string }
  /** The buyer's mark holds another order. */
  | { readonly kind: 'HELD'; readonly orderId: string }
  | { readonly kind: 'NO_UNITS' }
  | { readonly kind: 'NOT_PUBLISHED' }
  /** Partition or sale is being reconciled: ask again later. */
  | { readonly kind: 'CLOSED' };

export type RebuildBeginOutcome = { readonly kind: 'BEGUN' } | GuardLost;

/** `kept` names the buyers whose mark was not the expected one; it was left alone. */
export type RebuildMarksOutcome =
  { readonly kind: 'WRITTEN'; readonly written: number; readonly kept: readonly string[] } | GuardLost;

/** `units` and `unitsVersion` are those that stand now: the register's own where its version was higher. */
export type RebuildFinishOutcome =
  | {
      readonly kind: 'FINISHED';
      readonly unitsLeft: number;
      readonly marks: number;
      readonly units: number;
      readonly unitsVersion: number;
    }
  | GuardLost;
