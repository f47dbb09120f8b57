import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ERROR_CATALOGUE, type ErrorCode } from './catalogue/error-catalogue.js';
import { PROBLEM_CONTENT_TYPE, problemDocument, type ProblemMembers } from './problem.js';
import { REQUEST_ID_HEADER, requestId } from './request-id.js';

const REASONS: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  408: 'Request Timeout',
  431: 'Request Header Fields Too Large',
};

/**
 * Answers what the HTTP parser refuses before there is a request (malformed lines, headers too large, too slow) with a problem of the same shape
 * as all others, then closes the connection. A request that was received in full before the fault is answered first.
 */
export function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return;
  // The response that the connection is working on, if any.
  const current = (socket as { _httpMessage?: ServerResponse & { req: IncomingMessage } })._httpMessage;
  if (current?.req.complete === true && !current.writableFinished) {
    current.once('finish', () => socket.destroySoon());
    return;
  }
  if (socket.writable && current?.headersSent !== true) socket.write(rawProblem(codeOf(error)));
  socket.destroySoon();
}

function codeOf(error: NodeJS.ErrnoException): ErrorCode {
  switch (error.code) {
    case 'HPE_HEADER_OVERFLOW':
      return 'HEADERS_TOO_LARGE';
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return 'REQUEST_TIMEOUT';
    default:
      return 'INVALID_ARGUMENT';
  }
}

function rawProblem(code: ErrorCode): string {
  const id = requestId({});
  const members: ProblemMembers =
    code === 'INVALID_ARGUMENT' ? { errors: [{ detail: 'this is not a well-formed HTTP/1.1 request' }] } : {};
  const body = JSON.stringify(problemDocument(code, members, { language: 'en', requestId: id }));
  const { status } = ERROR_CATALOGUE[code];
  return [
    `HTTP/1.1 ${status} ${REASONS[status] ?? 'Bad Request'}`,
    `content-type: ${PROBLEM_CONTENT_TYPE}`,
    `content-length: ${Buffer.byteLength(body)}`,
    'cache-control: no-store',
    `${REQUEST_ID_HEADER}: ${id}`,
    'connection: close',
    '',
    body,
  ].join('\r\n');
}
