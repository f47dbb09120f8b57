/** What became of one purchase at the register. The first nine are decided by admit.lua in this precedence; the last by the connection. */
export type AdmissionOutcome =
  | { readonly kind: 'UNAVAILABLE'; readonly reason: UnavailableReason }
  | { readonly kind: 'NOT_PUBLISHED' }
  | { readonly kind: 'NOT_STARTED'; readonly beginMs: number }
  | { readonly kind: 'DUPLICATE'; readonly orderId: string }
  | { readonly kind: 'ENDED'; readonly endMs: number }
  | { readonly kind: 'SOLD_OUT' }
  | { readonly kind: 'OVERLOADED' }
  | { readonly kind: 'ACCEPTED'; readonly orderId: string }
  /** The call was sent and not answered, or not confirmed as durable: the order `candidateOrderId` may exist. */
  | { readonly kind: 'OUTCOME_UNKNOWN'; readonly candidateOrderId: string };

/**
 * Why the register refused before any effect: EPOCH (partition not reconciled with this server's data history), INCONSISTENT (stock and marks
 * contradict the units), REFUSED_WRITE (a write was refused and the earlier ones undone), NOT_SENT (no connection, or the deadline
 * passed before sending), SERVER_STATE (loading, full, read-only, not saving, busy, no rights).
 */
export type UnavailableReason = 'EPOCH' | 'INCONSISTENT' | 'REFUSED_WRITE' | 'NOT_SENT' | 'SERVER_STATE';

/** One purchase to decide. */
export interface AdmissionRequest {
  readonly voucherId: string;
  readonly userId: string;
  readonly orderId: string;
}

/** The terms of one sale as the database states them. Times in Unix milliseconds; `units` = units offered. */
export interface SaleTerms {
  readonly voucherId: string;
  readonly beginMs: number;
  readonly endMs: number;
  readonly units: number;
  readonly unitsVersion: number;
}

export type PublishOutcome = { readonly kind: 'PUBLISHED' | 'EXISTS' | 'CLOSED' | 'NEEDS_REBUILD' };

export type RestockOutcome =
  /** ALREADY: this version with these units stood there before. */
  | { readonly kind: 'APPLIED' | 'ALREADY'; readonly unitsLeft: number }
  | { readonly kind: 'INSUFFICIENT_UNITS'; readonly unitsLeft: number }
  /** The register knows this or a higher version with other units. */
  | { readonly kind: 'CONFLICT'; readonly units: number; readonly unitsVersion: number }
  | { readonly kind: 'NOT_PUBLISHED' }
  /** The sale is being rebuilt, or (decreases only) the partition's epoch is not open: nothing changed, ask again later. */
  | { readonly kind: 'CLOSED' };

/** RELEASED: unit and mark given back. REASSIGNED: the mark now names the buyer's other order. NOT_HELD: the mark does not hold this order; nothing changed. */
export type ReleaseOutcome = 'RELEASED' | 'REASSIGNED' | 'NOT_HELD';

/** One mark: this user holds this order of the voucher. */
export interface Mark {
  readonly userId: string;
  readonly orderId: string;
}

/** One sale as Redis holds it. Times in Unix milliseconds by Redis' clock. */
export interface SaleState {
  readonly voucherId: string;
  readonly beginMs: number;
  readonly endMs: number;
  /** `open`, or `reconciling:<token>` while the sale is rebuilt. */
  readonly status: string;
  readonly units: number;
  readonly unitsVersion: number;
  /** Raised by every change that frees or adds units, sets marks from outside or moves the window. */
  readonly version: number;
  readonly unitsLeft: number;
  /** Number of marks. `unitsLeft + marks = units` where the sale is consistent. */
  readonly marks: number;
}

/**
 * A sale as it was found: ABSENT (no key of it), BROKEN (a key is missing, of another type, or holds no number; `cause` says which), or FOUND.
 */
export type SaleReading =
  | { readonly kind: 'ABSENT' }
  | { readonly kind: 'BROKEN'; readonly cause: string }
  | { readonly kind: 'FOUND'; readonly sale: SaleState };
