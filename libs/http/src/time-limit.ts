/** What `within` answers where the time was up. */
export const LATE = Symbol('late');

/** The value of `work`, or LATE after `limitMs`; what `work` comes to later is dropped. Rejects as `work` does. */
export async function within<T>(work: Promise<T>, limitMs: number): Promise<T | typeof LATE> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<typeof LATE>((resolve) => {
    timer = setTimeout(resolve, Math.max(0, limitMs), LATE);
  });
  work.catch(() => undefined);
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
