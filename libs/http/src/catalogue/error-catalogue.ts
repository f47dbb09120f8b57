import type { CatalogueEntry } from './catalogue-entry.js';
import { PROTOCOL_ERRORS } from './protocol-errors.js';
import { SALE_ERRORS } from './sale-errors.js';

/** The stable machine word of an error, the `code` member of every problem. */
export type ErrorCode = keyof typeof SALE_ERRORS | keyof typeof PROTOCOL_ERRORS;

/** Every error that the product answers with: the one source of statuses, texts, error pages and the OpenAPI examples. */
export const ERROR_CATALOGUE: Readonly<Record<ErrorCode, CatalogueEntry>> = { ...PROTOCOL_ERRORS, ...SALE_ERRORS };

/** All codes, in the order of the catalogue. */
export const ERROR_CODES = Object.keys(ERROR_CATALOGUE) as ErrorCode[];

/** Whether the text is the code of an error of ours. */
export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(ERROR_CATALOGUE, text);
}

/** Where the page of an error stands; the `type` member of its problems. */
export function errorPagePath(code: ErrorCode): string {
  return `/docs/errors/${code}`;
}

const CODE_OF_STATUS: Readonly<Record<number, ErrorCode>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'FORBIDDEN',
  404: 'NOT_FOUND',
  408: 'REQUEST_TIMEOUT',
  413: 'PAYLOAD_TOO_LARGE',
  414: 'URI_TOO_LONG',
  415: 'UNSUPPORTED_MEDIA_TYPE',
  429: 'RATE_LIMITED',
  431: 'HEADERS_TOO_LARGE',
  503: 'UNAVAILABLE',
};

/** The code for an error of the framework, of which only the status is known. */
export function codeOfStatus(status: number): ErrorCode {
  const known = CODE_OF_STATUS[status];
  if (known !== undefined) return known;
  return status >= 400 && status < 500 ? 'INVALID_ARGUMENT' : 'INTERNAL';
}
