/** What one pass did, by entries. */
export interface ConsumeCounts {
  /** Entries read from the stream (new, own pending, claimed), without those that were in hand already. */
  read: number;
  /** Orders that became rows. */
  stored: number;
  /** Orders that had been settled before: stored or cancelled. */
  alreadySettled: number;
  /** Orders with a recorded rejection. */
  rejected: number;
  /** Entries moved to the dead letters. */
  deadLettered: number;
  /** Entries whose fields were gone: reported and acknowledged. */
  vanished: number;
  /** Orders left pending because their voucher was locked. */
  deferred: number;
  /** Orders whose entry was lost by Redis and that were appended again, with the same id. */
  readmitted: number;
  /** Entries acknowledged. */
  acknowledged: number;
}

/** All zero. */
export function noCounts(): ConsumeCounts {
  return {
    read: 0,
    stored: 0,
    alreadySettled: 0,
    rejected: 0,
    deadLettered: 0,
    vanished: 0,
    deferred: 0,
    readmitted: 0,
    acknowledged: 0,
  };
}

/** Adds `more` to `counts`, in place. */
export function addCounts(counts: ConsumeCounts, more: ConsumeCounts): ConsumeCounts {
  for (const key of Object.keys(counts) as (keyof ConsumeCounts)[]) counts[key] += more[key];
  return counts;
}
