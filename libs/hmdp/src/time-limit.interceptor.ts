import { type CallHandler, type ExecutionContext, Inject, Injectable, type NestInterceptor } from '@nestjs/common';
import { type Observable, timeout } from 'rxjs';
import { SETTINGS, type Settings } from '#config';

/** Part of the request's time that a handler may take; hmdp's pages wait 2,000 ms. */
const SHARE = 0.9;

/** Gives a handler up before the client does: it answers as an error, whatever the stores are still doing. */
@Injectable()
export class TimeLimitInterceptor implements NestInterceptor {
  private readonly limitMs: number;

  constructor(@Inject(SETTINGS) settings: Settings) {
    this.limitMs = settings.http.requestTimeoutMs * SHARE;
  }

  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(timeout(this.limitMs));
  }
}
