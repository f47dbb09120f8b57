import type { LoggerService } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Counter } from 'prom-client';
import type { Settings } from '#config';
import type { Intake } from '#http';

/** An application that has been put together and does not listen yet. */
export interface Assembled {
  readonly app: NestFastifyApplication;
  readonly intake: Intake;
}

/** A request may still use its whole time, and its answer must reach the socket. */
const ANSWER_MARGIN_MS = 500;
/** Kept for the last log line and the exit itself. */
const EXIT_MARGIN_MS = 200;
/** A terminal delivers one Ctrl-C twice; a second signal means "at once" only after this time. */
const FORCE_AFTER_MS = 1000;

const unhandledRejections = new Counter({
  name: 'seckill_unhandled_rejections_total',
  help: 'Promise rejections that nobody handled; each is a defect, logged with its stack.',
});

/**
 * Puts an application together. What it needs is best imported in here, so that bad settings are told and signals are heard before the first
 * second is spent on loading.
 */
export type Assemble = () => Promise<Assembled>;

/**
 * The life of a process: assembles the application, listens, serves until SIGTERM or SIGINT, and ends with code 0 within SHUTDOWN_TIMEOUT_MS,
 * whatever the stores do. On the way down: no new requests, running ones are answered, then the modules end in Nest's order (work in hand, then
 * connections). Where it cannot start it says why in one line and ends with code 1.
 */
export async function run(settings: Settings, logger: LoggerService, assemble: Assemble): Promise<void> {
  const ending = new Ending(settings, logger);
  ending.listenForSignals();
  watchForDefects(logger);
  try {
    const assembled = await assemble();
    ending.begun(assembled);
    const { host, port } = settings.http;
    await assembled.app.listen(port, host);
    logger.log(`serving on http://${host.includes(':') ? `[${host}]` : host}:${port}`, 'Process');
  } catch (error) {
    logger.fatal?.(startFailure(error as NodeJS.ErrnoException, settings), 'Process');
    process.exit(1);
  }
}

class Ending {
  private assembled: Assembled | undefined;
  private startedMs: number | undefined;

  constructor(
    private readonly settings: Settings,
    private readonly logger: LoggerService,
  ) {}

  listenForSignals(): void {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => this.signalled(signal));
  }

  begun(assembled: Assembled): void {
    this.assembled = assembled;
  }

  private signalled(signal: NodeJS.Signals): void {
    if (this.startedMs === undefined) {
      this.startedMs = performance.now();
      void this.end(signal);
    } else if (performance.now() - this.startedMs > FORCE_AFTER_MS) {
      this.logger.warn(`${signal} again: ending at once`, 'Process');
      process.exit(1);
    }
  }

  private async end(signal: NodeJS.Signals): Promise<void> {
    const { shutdownTimeoutMs, http } = this.settings;
    this.logger.log(`${signal}: no new requests, finishing what is in hand`, 'Process');
    setTimeout(() => {
      // Nothing is lost by it: what was not finished is pending in the stream and is taken over.
      this.logger.warn(`not everything ended within ${shutdownTimeoutMs} ms; the rest is left to others`, 'Process');
      process.exit(0);
    }, shutdownTimeoutMs - EXIT_MARGIN_MS);
    try {
      if (this.assembled !== undefined) {
        const { app, intake } = this.assembled;
        await intake.close(app.getHttpServer(), http.requestTimeoutMs + ANSWER_MARGIN_MS);
        await app.close();
      }
      this.logger.log('stopped', 'Process');
      process.exit(0);
    } catch (error) {
      this.logger.error(error, 'Process');
      process.exit(1);
    }
  }
}

/**
 * An exception that nobody caught leaves the process in an unknown state: it ends, and others take over its work. A promise that failed with
 * nobody waiting is a defect too, but one whose effects are known (nothing came of it): it is told and counted, and the sale goes on.
 */
function watchForDefects(logger: LoggerService): void {
  process.on('uncaughtException', (error) => {
    logger.fatal?.(error, 'Process');
    process.exit(1);
  });
  process.on('unhandledRejection', (reason) => {
    unhandledRejections.inc();
    logger.error(reason instanceof Error ? reason : `unhandled rejection: ${String(reason)}`, 'Process');
  });
}

function startFailure(error: NodeJS.ErrnoException, { http: { host, port } }: Settings): string {
  switch (error.code) {
    case 'EADDRINUSE':
      return `port ${port} on ${host} is taken by another process (EADDRINUSE); stop it, or choose another with PORT`;
    case 'EACCES':
      return `this user may not listen on port ${port} (EACCES); choose a port above 1023 with PORT`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `${host} is no address of this machine (${error.code}); choose another with HOST`;
    default:
      return `cannot start: ${error.stack ?? String(error)}`;
  }
}
