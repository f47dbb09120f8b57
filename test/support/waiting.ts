/** A condition did not come true in time. */
export class NotInTimeError extends Error {}

const POLL_MS = 20;

/**
 * Resolves with the first value of `look` that is neither undefined nor false, asking again and again; errors of `look` count as "not yet".
 * @throws NotInTimeError naming `what` and the last error
 */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined | false> | T | undefined | false,
  limitMs: number,
  everyMs = POLL_MS,
): Promise<T> {
  const deadline = performance.now() + limitMs;
  let last: unknown;
  for (;;) {
    try {
      const seen = await look();
      if (seen !== undefined && seen !== false) return seen;
      last = undefined;
    } catch (error) {
      last = error;
    }
    if (performance.now() > deadline) {
      const why = last instanceof Error ? `: ${last.message}` : '';
      throw new NotInTimeError(`${what}: not within ${limitMs} ms${why}`, { cause: last });
    }
    await pause(everyMs);
  }
}

/** The length of a fault, or the time between two tries of a client; never a way to wait for a condition. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
