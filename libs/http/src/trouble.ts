import type { ErrorCode } from './catalogue/error-catalogue.js';

/** The codes that trouble is answered with. */
export type TroubleCode = Extract<ErrorCode, 'UNAVAILABLE' | 'OVERLOADED' | 'OUTCOME_UNKNOWN'>;

/**
 * Implemented by error classes of any room that stand for passing trouble (a store is away, too slow, full): such an error is answered 503 with
 * this code and is no defect.
 */
export interface Trouble {
  readonly trouble: TroubleCode;
}

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
const TROUBLE_CODES: readonly string[] = ['UNAVAILABLE', 'OVERLOADED', 'OUTCOME_UNKNOWN'] satisfies TroubleCode[];
/** SQLSTATE: connection, resources, rollback, operator; and lock not available, read-only transaction. */
const PASSING_SQLSTATE = /^(?:08|53|57|40)[0-9A-Z]{3}$|^(?:55P03|25006|25P03)$/;
const MAX_CAUSES = 8;

/** The code for an error that is, or was caused by, passing trouble; undefined for anything else (a defect). Cycles of causes are harmless. */
export function troubleCode(error: unknown): TroubleCode | undefined {
  let current: unknown = error;
  for (let depth = 0; depth < MAX_CAUSES && typeof current === 'object' && current !== null; depth += 1) {
    const { trouble, code, cause, driverError } = current as Record<string, unknown>;
    if (typeof trouble === 'string' && TROUBLE_CODES.includes(trouble)) return trouble as TroubleCode;
    if (typeof code === 'string' && (NETWORK_CODES.has(code) || PASSING_SQLSTATE.test(code))) return 'UNAVAILABLE';
    current = cause ?? driverError;
  }
  return undefined;
}
