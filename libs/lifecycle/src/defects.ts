import type { LoggerService } from '@nestjs/common';
import { unhandledRejections } from './metrics.js';

/**
 * An exception that nobody caught leaves the process in an unknown state: it ends, and others take over its work. A promise that failed with
 * nobody waiting is a defect too, but one whose effects are known (nothing came of it): it is told and counted, and the sale goes on.
 */
export function watchForDefects(logger: LoggerService): void {
  process.on('uncaughtException', (error) => {
    logger.fatal?.(error, 'Process');
    process.exit(1);
  });
  process.on('unhandledRejection', (reason) => {
    unhandledRejections.inc();
    logger.error(reason instanceof Error ? reason : `unhandled rejection: ${String(reason)}`, 'Process');
  });
}
