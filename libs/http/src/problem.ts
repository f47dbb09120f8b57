import type { FastifyReply, FastifyRequest } from 'fastify';
import { negotiateLanguage, type Language } from './accept-language.js';
import { ERROR_CATALOGUE, type ErrorCode, errorPagePath } from './catalogue/error-catalogue.js';

/** One bad value of a request: `pointer` (RFC 6901) into the body, or the name of a path or query parameter or header. */
export interface FieldProblem {
  readonly pointer?: string;
  readonly parameter?: string;
  readonly header?: string;
  readonly detail: string;
}

/** Members of a problem beyond those that its code implies. */
export interface ProblemMembers {
  readonly orderId?: string;
  readonly candidateOrderId?: string;
  /** ISO 8601, UTC. */
  readonly beginTime?: string;
  /** ISO 8601, UTC. */
  readonly endTime?: string;
  readonly unitsLeft?: number;
  /** Seconds; also sent as Retry-After. Default: the catalogue's. */
  readonly retryAfter?: number;
  readonly errors?: readonly FieldProblem[];
}

/** The body of an answer that refuses (RFC 9457). */
export interface ProblemDocument extends ProblemMembers {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: ErrorCode;
  readonly instance?: string;
  readonly requestId: string;
}

/** An expected refusal: thrown anywhere in a request, answered by the problem filter with the status and texts of its code. */
export class ProblemException extends Error {
  override readonly name = 'ProblemException';

  constructor(
    readonly code: ErrorCode,
    readonly members: ProblemMembers = {},
    options?: ErrorOptions,
  ) {
    super(ERROR_CATALOGUE[code].detail.en, options);
  }
}

/** The refusal for values that break their format: INVALID_ARGUMENT naming each of them. */
export function invalidArgument(...errors: readonly FieldProblem[]): ProblemException {
  return new ProblemException('INVALID_ARGUMENT', { errors });
}

export const PROBLEM_CONTENT_TYPE = 'application/problem+json; charset=utf-8';
const MAX_INSTANCE_CHARS = 256;

/** Builds the body for the code in the language. `instance` is the path of the request, left out where it is unreasonably long. */
export function problemDocument(
  code: ErrorCode,
  members: ProblemMembers,
  context: { readonly language: Language; readonly requestId: string; readonly url?: string },
): ProblemDocument {
  const { status, title, detail, retryAfterSeconds } = ERROR_CATALOGUE[code];
  const { language, requestId, url } = context;
  const path = instanceOf(url);
  return {
    type: errorPagePath(code),
    title: title[language],
    status,
    detail: detail[language],
    code,
    ...(retryAfterSeconds === undefined ? {} : { retryAfter: retryAfterSeconds }),
    ...members,
    ...(path !== undefined ? { instance: path } : {}),
    requestId,
  };
}

/** The path of the request; undefined where it is unreasonably long. */
function instanceOf(url: string | undefined): string | undefined {
  if (url === undefined) return undefined;
  const query = url.indexOf('?');
  const path = query < 0 ? url : url.slice(0, query);
  return path.length <= MAX_INSTANCE_CHARS ? path : undefined;
}

const NO_MEMBERS: ProblemMembers = {};
/** What the texts of one code and language have in common, up to the members of the single request. */
const beginnings = new Map<string, string>();

/** The JSON of `problemDocument`. A refusal without members of its own is put together from its constant part: it is the commonest answer of a sale. */
export function problemText(
  code: ErrorCode,
  members: ProblemMembers,
  context: { readonly language: Language; readonly requestId: string; readonly url?: string },
): string {
  if (members !== NO_MEMBERS) return JSON.stringify(problemDocument(code, members, context));
  const key = `${code} ${context.language}`;
  let beginning = beginnings.get(key);
  if (beginning === undefined) {
    const { requestId: _, ...constant } = problemDocument(code, NO_MEMBERS, {
      language: context.language,
      requestId: '',
    });
    beginning = JSON.stringify(constant).slice(0, -1);
    beginnings.set(key, beginning);
  }
  const path = instanceOf(context.url);
  const instance = path === undefined ? '' : `,"instance":${JSON.stringify(path)}`;
  return `${beginning}${instance},"requestId":${JSON.stringify(context.requestId)}}`;
}

/**
 * Answers the request with a problem, in the language that it prefers. Use it instead of throwing where refusals are the common case: no error
 * object, no stack. Handlers that call it take the reply by `@Res()` and return nothing.
 */
export function sendProblem(
  request: FastifyRequest,
  reply: FastifyReply,
  code: ErrorCode,
  members: ProblemMembers = NO_MEMBERS,
): void {
  const language = negotiateLanguage(request.headers['accept-language']);
  const { status, retryAfterSeconds } = ERROR_CATALOGUE[code];
  const retryAfter = members.retryAfter ?? retryAfterSeconds;
  if (retryAfter !== undefined) reply.header('retry-after', String(retryAfter));
  if (code === 'UNAUTHENTICATED') reply.header('www-authenticate', 'Bearer');
  reply
    .code(status)
    .header('content-language', language)
    .header('cache-control', 'no-store')
    .header('content-type', PROBLEM_CONTENT_TYPE)
    .send(problemText(code, members, { language, requestId: request.id, url: request.url }));
}
