/** The first pause after a failure, before jitter. */
export const FIRST_PAUSE_MS = 100;
/** No pause is longer than this, so that work goes on within seconds of the trouble's end. */
export const LONGEST_PAUSE_MS = 2_000;

/**
 * How long to wait after the given number of failures in a row (1 = the first): doubles from FIRST_PAUSE_MS to LONGEST_PAUSE_MS; the jitter takes
 * away up to half of it. `random` is a number in [0, 1). There is no last failure: passing trouble never uses up a budget.
 */
export function pauseMs(failures: number, random: number): number {
  if (!(failures >= 1)) return 0;
  const full = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures - 1, 16));
  return Math.round(full * (1 - random / 2));
}

/**
 * How many orders the next transaction takes, after one of `size` orders succeeded or failed: halved by each failure (so that an order which
 * fails whatever company it is in ends up alone), doubled by each success up to `largest`.
 */
export function nextGroupSize(size: number, succeeded: boolean, largest: number): number {
  return succeeded ? Math.min(largest, size * 2) : Math.max(1, Math.floor(size / 2));
}

/** What an error of the stream's server means for the consumer. */
export type StreamTrouble =
  /** Stream or group is not there: create it and read on. */
  | 'GROUP_MISSING'
  /** Another type stands under the stream's key. */
  | 'WRONG_TYPE'
  /** The server's user may not do this, or may not enter at all. */
  | 'NO_RIGHTS'
  /** Everything else: connection, loading, full, read-only, not saving, busy. It waits. */
  | 'PASSING';

/** Names the trouble by the error word with which the server's reply begins. */
export function streamTrouble(error: unknown): StreamTrouble {
  const message = error instanceof Error ? error.message : String(error);
  if (/^(NOGROUP|UNBLOCKED)\b/.test(message)) return 'GROUP_MISSING';
  if (/\bWRONGTYPE\b/.test(message)) return 'WRONG_TYPE';
  if (/\b(NOPERM|NOAUTH|WRONGPASS)\b|can't run this command/.test(message)) return 'NO_RIGHTS';
  return 'PASSING';
}

/** What is said of the two kinds of trouble that somebody must mend; the others speak for themselves. */
const EXPLANATIONS: Partial<Record<StreamTrouble, string>> = {
  WRONG_TYPE: 'a key of the order stream holds another type of value: ',
  NO_RIGHTS: 'the Redis user lacks a right of the consumer: ',
};

/** One line about an error and its cause, fit for a log and for health: names and messages, no stack, of bounded length. */
export function describeError(error: unknown): string {
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  const texts = [error, cause].filter((each) => each !== undefined).map(textOf);
  const line = `${EXPLANATIONS[streamTrouble(cause ?? error)] ?? ''}${texts.join(': ')}`.replaceAll(/\s+/g, ' ');
  return line.length > 300 ? `${line.slice(0, 300)}...` : line;
}

function textOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
