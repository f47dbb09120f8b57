import { type CallHandler, type ExecutionContext, Inject, Injectable, type NestInterceptor } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { catchError, type Observable, throwError, timeout } from 'rxjs';
import { SETTINGS, type Settings } from '#config';
import { ProblemException } from './problem.js';
import { mayHaveHadEffect } from './trouble.js';

/** Part of REQUEST_TIMEOUT_MS that a handler may take; the rest is for the way back. */
const SHARE = 0.9;

/**
 * Answers before the request's deadline, whatever the stores are still doing: UNAVAILABLE where nothing can have happened, OUTCOME_UNKNOWN where
 * the call writes and its effect may stand.
 */
@Injectable()
export class AnswerInTimeInterceptor implements NestInterceptor {
  private readonly limitMs: number;

  constructor(@Inject(SETTINGS) settings: Settings) {
    this.limitMs = settings.http.requestTimeoutMs * SHARE;
  }

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const { method } = context.switchToHttp().getRequest<FastifyRequest>();
    const writes = method !== 'GET' && method !== 'HEAD';
    const late = new ProblemException(writes ? 'OUTCOME_UNKNOWN' : 'UNAVAILABLE');
    const answer = next.handle().pipe(timeout({ first: this.limitMs, with: () => throwError(() => late) }));
    if (!writes) return answer;
    return answer.pipe(
      catchError((error: unknown) =>
        throwError(() =>
          mayHaveHadEffect(error) ? new ProblemException('OUTCOME_UNKNOWN', {}, { cause: error }) : error,
        ),
      ),
    );
  }
}
