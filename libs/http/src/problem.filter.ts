import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException, Logger } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { codeOfStatus, type ErrorCode } from './catalogue/error-catalogue.js';
import { ProblemException, type ProblemMembers, sendProblem } from './problem.js';
import { isTrouble } from './trouble.js';

/**
 * The one place where an error becomes a status and a body. Refusals answer with their code, errors of the framework with the code of their
 * status, passing trouble with 503; whatever is left is a defect: 500 INTERNAL, logged under the request id, nothing of it told to the client.
 */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  private readonly logger = new Logger(ProblemFilter.name);

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    this.answer(error, http.getRequest<FastifyRequest>(), http.getResponse<FastifyReply>());
  }

  /** Answers the request with what the error stands for; where an answer is on its way already, only logs. */
  answer(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
    const { code, members } = outcomeOf(error);
    if (code === 'INTERNAL') {
      const stack = error instanceof Error ? error.stack : String(error);
      this.logger.error(`request ${request.id} ${request.method} ${request.routeOptions.url ?? ''}: ${stack}`);
    }
    if (!reply.sent) sendProblem(request, reply, code, members);
  }
}

function outcomeOf(error: unknown): { code: ErrorCode; members: ProblemMembers } {
  if (error instanceof ProblemException) return { code: error.code, members: error.members };
  if (isTrouble(error)) return { code: 'UNAVAILABLE', members: {} };
  const status = statusOf(error);
  const code = status === undefined ? 'INTERNAL' : codeOfStatus(status);
  return { code, members: code === 'INVALID_ARGUMENT' ? { errors: [{ detail: requestFault(error) }] } : {} };
}

function statusOf(error: unknown): number | undefined {
  if (error instanceof HttpException) return error.getStatus();
  // Fastify's own errors carry the status; other libraries' errors with such a member are theirs, not an answer of ours.
  const { code, statusCode, name } = (error ?? {}) as { code?: unknown; statusCode?: unknown; name?: unknown };
  const isFastifys = (typeof code === 'string' && code.startsWith('FST_')) || name === 'SyntaxError';
  return isFastifys && typeof statusCode === 'number' ? statusCode : undefined;
}

/** Words for a request that cannot be parsed; only texts of our own, for the parser's may repeat the input. */
function requestFault(error: unknown): string {
  switch ((error as { code?: unknown }).code) {
    case 'FST_ERR_CTP_EMPTY_JSON_BODY':
      return 'the body is empty although Content-Type says application/json';
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return 'the length of the body differs from Content-Length';
    case 'FST_ERR_BAD_URL':
      return 'the URL holds a bad escape';
    default:
      return error instanceof SyntaxError ? 'the body is not valid JSON' : 'the request cannot be read';
  }
}
