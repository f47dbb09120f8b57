/** Cuts a list into pieces of at most `size`. */
export function* pieces<T>(items: readonly T[], size: number): Generator<readonly T[]> {
  for (let at = 0; at < items.length; at += size) yield items.slice(at, at + size);
}

/** Walks a source and has it fetch the next page while the last one is worked on: two pages in memory. Looks at the signal before each page. */
export async function* ahead<T>(source: AsyncGenerator<T>, signal: AbortSignal): AsyncGenerator<T> {
  let coming = source.next();
  try {
    for (;;) {
      const page = await coming;
      signal.throwIfAborted();
      if (page.done === true) return;
      coming = source.next();
      // Awaited at the next turn; until then its failure is nobody's.
      coming.catch(() => undefined);
      yield page.value;
    }
  } finally {
    // A walk that was left early: the page under way ends first, so that nothing of it outlives the caller.
    await coming.catch(() => undefined);
    await source.return(undefined);
  }
}

/**
 * Does the work for every item, `size` of them side by side, and answers the results in the items' order. Where one fails, those beside it end first
 * and nothing further is begun; then the first failure is thrown.
 */
export async function sideBySide<T, R>(
  items: readonly T[],
  size: number,
  work: (item: T, index: number) => Promise<R>,
): Promise<R[]> {
  const results = new Array<R>(items.length);
  let next = 0;
  let failure: { readonly error: unknown } | undefined;
  const lane = async (): Promise<void> => {
    while (next < items.length && failure === undefined) {
      const index = next;
      next += 1;
      try {
        results[index] = await work(items[index] as T, index);
      } catch (error) {
        failure ??= { error };
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(size, items.length) }, lane));
  if (failure !== undefined) throw failure.error;
  return results;
}
