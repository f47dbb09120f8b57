import type { LoggerService } from '@nestjs/common';

/** A terminal delivers one Ctrl-C twice, and a supervisor repeats what the terminal sent: a second signal means "at once" only after this time. */
const FORCE_AFTER_MS = 1000;

/** Hears SIGTERM and SIGINT: `stop` is called once, for the first; `force` for one that comes more than a second later. */
export function onStopSignal(logger: LoggerService, actions: { stop(signal: string): void; force(): void }): void {
  let firstMs: number | undefined;
  const signalled = (signal: NodeJS.Signals): void => {
    if (firstMs === undefined) {
      firstMs = performance.now();
      actions.stop(signal);
    } else if (performance.now() - firstMs > FORCE_AFTER_MS) {
      logger.warn(`${signal} again: ending at once`, 'Process');
      actions.force();
    }
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, signalled);
}
