import { rebuildDuration, rebuilds } from './metrics.js';
import type { RebuildOutcome, RebuildReport } from './reports.js';

/** What a rebuild has done so far. */
export interface RebuildTally {
  vouchers: number;
  marks: number;
  marksSet: number;
  marksRemoved: number;
  entriesAppended: number;
}

/** Runs a rebuild, which fills the tally; answers its report and counts it in the metrics. */
export async function measured(
  scope: 'partition' | 'voucher',
  partition: number,
  work: (tally: RebuildTally) => Promise<RebuildOutcome>,
): Promise<RebuildReport> {
  const startedMs = performance.now();
  const tally = emptyTally();
  let outcome: RebuildOutcome | 'FAILED' = 'FAILED';
  try {
    outcome = await work(tally);
    return { outcome, partition, ...tally, durationMs: Math.round(performance.now() - startedMs) };
  } finally {
    rebuilds.inc({ scope, outcome });
    if (outcome === 'OPENED') rebuildDuration.observe({ scope }, (performance.now() - startedMs) / 1_000);
  }
}

/** Nothing done yet. */
export function emptyTally(): RebuildTally {
  return { vouchers: 0, marks: 0, marksSet: 0, marksRemoved: 0, entriesAppended: 0 };
}

/** Adds a part to the whole. */
export function addTally(whole: RebuildTally, part: RebuildTally): void {
  whole.vouchers += part.vouchers;
  whole.marks += part.marks;
  whole.marksSet += part.marksSet;
  whole.marksRemoved += part.marksRemoved;
  whole.entriesAppended += part.entriesAppended;
}

/** The tally in words, for a log. */
export function describeTally(tally: RebuildTally): string {
  return (
    `${tally.vouchers} vouchers, ${tally.marks} marks (${tally.marksSet} set, ${tally.marksRemoved} removed), ` +
    `${tally.entriesAppended} entries appended again`
  );
}
