const NETWORK_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
]);
/** SQLSTATE: connection, resources, rollback, operator; and lock not available, read-only transaction. */
const PASSING_SQLSTATE = /^(?:08|53|57|40)[0-9A-Z]{3}$|^(?:55P03|25006|25P03)$/;
const MAX_CAUSES = 8;

/**
 * Whether the error is, or was caused by, passing trouble: a store or an issuer is away, too slow or full. Such an error is answered 503 and is
 * no defect. Rooms say so by a `code` that ends in UNAVAILABLE (`DATABASE_UNAVAILABLE`, `REDIS_UNAVAILABLE`); errors of the operating system and
 * passing states of PostgreSQL are known by their own codes. Cycles of causes are harmless.
 */
export function isTrouble(error: unknown): boolean {
  return someCause(
    error,
    ({ code }) =>
      typeof code === 'string' &&
      (code.endsWith('UNAVAILABLE') || NETWORK_CODES.has(code) || PASSING_SQLSTATE.test(code)),
  );
}

/** Whether what failed may have taken effect all the same: rooms say so by a member `mayHaveHadEffect` of their errors. */
export function mayHaveHadEffect(error: unknown): boolean {
  return someCause(error, (each) => each.mayHaveHadEffect === true);
}

function someCause(error: unknown, holds: (cause: Record<string, unknown>) => boolean): boolean {
  let current: unknown = error;
  for (let depth = 0; depth < MAX_CAUSES && typeof current === 'object' && current !== null; depth += 1) {
    const each = current as Record<string, unknown>;
    if (holds(each)) return true;
    current = each.cause ?? each.driverError;
  }
  return false;
}
