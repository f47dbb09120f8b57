import { Module } from '@nestjs/common';
import { APP_FILTER, APP_PIPE } from '@nestjs/core';
import { ErrorPagesController } from './error-pages.controller.js';
import { ProblemFilter } from './problem.filter.js';
import { DtoPipe } from './validation.pipe.js';

/** Gives the application its one filter, its one validation pipe and the error pages. Goes with the adapter of `createHttpServer`. */
@Module({
  controllers: [ErrorPagesController],
  providers: [
    { provide: APP_FILTER, useClass: ProblemFilter },
    { provide: APP_PIPE, useClass: DtoPipe },
  ],
})
export class HttpModule {}
