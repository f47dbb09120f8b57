import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException, Logger } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isTrouble, ProblemException } from '#http';
import { fail, sendEnvelope, TEXTS } from './envelope.js';

const SERVER_FAULT = JSON.stringify(fail(TEXTS.SERVER_FAULT));

/**
 * Answers every error of hmdp's routes as hmdp does: HTTP 200, 服务器异常. So its pages show the words, and its nginx, which sends a request again
 * after a 503, does not multiply a crowd. Defects are logged under the request id.
 */
@Catch()
export class HmdpErrorFilter implements ExceptionFilter {
  private readonly logger = new Logger(HmdpErrorFilter.name);

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    this.answer(error, http.getRequest<FastifyRequest>(), http.getResponse<FastifyReply>());
  }

  answer(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
    if (!isExpected(error)) {
      const stack = error instanceof Error ? error.stack : String(error);
      this.logger.error(`request ${request.id} ${request.method} ${request.routeOptions.url ?? ''}: ${stack}`);
    }
    if (!reply.sent) sendEnvelope(reply, SERVER_FAULT);
  }
}

/** Passing trouble, lateness, and requests that cannot be read: no defect of ours. */
function isExpected(error: unknown): boolean {
  if (isTrouble(error) || error instanceof ProblemException) return true;
  if (error instanceof HttpException) return error.getStatus() < 500;
  const { statusCode } = (error ?? {}) as { statusCode?: unknown };
  return typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500;
}
