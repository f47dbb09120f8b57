import type { LoggerService } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Settings } from '#config';
import type { Intake } from '#http';
import { watchForDefects } from './defects.js';
import { isFleetMember, joinFleet } from './fleet-member.js';
import { processes } from './metrics.js';
import { addressOf } from './serving-address.js';
import { onStopSignal } from './stop-signals.js';

/** An application that has been put together and does not listen yet. */
export interface Assembled {
  readonly app: NestFastifyApplication;
  readonly intake: Intake;
}

/** A request may still use its whole time, and its answer must reach the socket. */
const ANSWER_MARGIN_MS = 500;
/** Kept for the last log line and the exit itself. */
const EXIT_MARGIN_MS = 200;

/**
 * Puts an application together. What it needs is best imported in here, so that bad settings are told and signals are heard before the first
 * second is spent on loading.
 */
export type Assemble = () => Promise<Assembled>;

/**
 * The life of a process: assembles the application, listens, serves until SIGTERM or SIGINT, and ends with code 0 within SHUTDOWN_TIMEOUT_MS,
 * whatever the stores do. On the way down: no new requests, running ones are answered, then the modules end in Nest's order (work in hand, then
 * connections). Where it cannot start it says why in one line and ends with code 1. One of a fleet (API_PROCESSES) ends like this also when the
 * supervising process is gone.
 */
export async function run(settings: Settings, logger: LoggerService, assemble: Assemble): Promise<void> {
  const ending = new Ending(settings, logger);
  onStopSignal(logger, { stop: (signal) => ending.begin(signal), force: () => process.exit(1) });
  if (isFleetMember(settings)) joinFleet(() => ending.begin('the supervising process is gone'));
  watchForDefects(logger);
  try {
    const assembled = await assemble();
    ending.assembled = assembled;
    await assembled.app.listen(settings.http.port, settings.http.host);
    processes.set(1);
    logger.log(`serving on ${addressOf(settings)}`, 'Process');
  } catch (error) {
    logger.fatal?.(startFailure(error as NodeJS.ErrnoException, settings), 'Process');
    process.exit(1);
  }
}

class Ending {
  assembled: Assembled | undefined;
  private isEnding = false;

  constructor(
    private readonly settings: Settings,
    private readonly logger: LoggerService,
  ) {}

  /** Ends the process; a second reason changes nothing. */
  begin(reason: string): void {
    if (this.isEnding) return;
    this.isEnding = true;
    void this.end(reason);
  }

  private async end(reason: string): Promise<void> {
    const { shutdownTimeoutMs, http } = this.settings;
    this.logger.log(`${reason}: no new requests, finishing what is in hand`, 'Process');
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
