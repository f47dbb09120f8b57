import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

export const REQUEST_ID_HEADER = 'x-request-id';
const SANE = /^[A-Za-z0-9._:/+=@-]{1,128}$/;
const processPart = randomBytes(9).toString('base64url');
let count = 0;

/** The caller's X-Request-Id where it is sane (1 to 128 plain characters), else a new one, unique across processes. */
export function requestId(headers: IncomingHttpHeaders): string {
  const given = headers[REQUEST_ID_HEADER];
  if (typeof given === 'string' && SANE.test(given)) return given;
  count += 1;
  return `${processPart}-${count.toString(36)}`;
}
