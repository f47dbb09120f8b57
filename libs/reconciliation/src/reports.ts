import type { Finding, FindingKind } from './findings.js';

/** What one rebuild came to. */
export type RebuildOutcome =
  /** Rebuilt, looked over and open again. */
  | 'OPENED'
  /** Another reconciler took over, or the server's data history changed meanwhile: nothing is open because of this run. */
  | 'LOST'
  /** The partition is closed: only its own rebuild opens the sales in it. */
  | 'PARTITION_CLOSED'
  /** The record does not know the voucher. */
  | 'UNKNOWN_VOUCHER'
  /** The server cannot name its data history, or the user may not ask for it. */
  | 'NO_HISTORY'
  /** The register's sale was sound, or the partition open again: nothing was done. */
  | 'NOT_NEEDED'
  /** Differences came up again after each repair; the sales stay closed. */
  | 'UNSETTLED';

/** The report of a rebuild. Counts are of this run; `durationMs` runs until the sales were open. */
export interface RebuildReport {
  readonly outcome: RebuildOutcome;
  readonly partition: number;
  /** Vouchers whose Redis side was rebuilt. */
  readonly vouchers: number;
  /** Marks that stand in the rebuilt vouchers. */
  readonly marks: number;
  /** Marks that were set, or set to another order. */
  readonly marksSet: number;
  /** Marks of orders that hold no unit, taken away. */
  readonly marksRemoved: number;
  /** Entries that were appended again. */
  readonly entriesAppended: number;
  readonly durationMs: number;
}

/** One voucher as an inspection saw it. */
export interface VoucherReport {
  readonly voucherId: string;
  readonly partition: number;
  readonly units: number;
  /** Units left and marks by the register; undefined where the sale cannot be used. */
  readonly stock: number | undefined;
  readonly marks: number | undefined;
  readonly activeOrders: number;
  readonly onTheWay: number;
  readonly findings: readonly Finding[];
  /** False where the look stopped at its limit of suspicions: there may be more. */
  readonly complete: boolean;
}

/** What one inspection found. */
export interface Inspection {
  readonly vouchers: readonly VoucherReport[];
  /** Findings of whole partitions. */
  readonly partitions: readonly Finding[];
  /** Every finding in the order in which they are worked. */
  readonly findings: readonly Finding[];
  /** False where the time or the size of one look ended it before the last voucher. */
  readonly complete: boolean;
  readonly durationMs: number;
}

/** What became of one finding. */
export type RepairResult =
  /** Done, and noted in the ledger. */
  | 'REPAIRED'
  /** The script looked again and the difference was gone or another one: nothing was changed. */
  | 'GONE'
  /** A raise of the stock waits for a second full look that finds the same and nothing else. */
  | 'WAITS'
  /** Nothing of ours repairs this: it is the operator's. */
  | 'NOT_REPAIRABLE'
  /** The partition closed, or another reconciler works on the voucher: the next pass looks again. */
  | 'LOST';

export interface Repair {
  readonly finding: Finding;
  readonly result: RepairResult;
}

/** What looks and repairs, in turns until nothing changed any more, came to. */
export interface PassReport {
  /** What was found before any repair. */
  readonly before: Inspection;
  /** The last look; after repairs it covers the vouchers that were found wanting. */
  readonly after: Inspection;
  readonly repairs: readonly Repair[];
}

/** How many findings there are of each kind. */
export function countByKind(findings: readonly Finding[]): Map<FindingKind, number> {
  const counts = new Map<FindingKind, number>();
  for (const { kind } of findings) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
}
