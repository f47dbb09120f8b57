import cluster, { type Worker } from 'node:cluster';
import type { LoggerService } from '@nestjs/common';
import type { Settings } from '#config';
import { watchForDefects } from './defects.js';
import { FleetFigures } from './fleet-figures.js';
import { type FleetMessage, isFleetMessage } from './fleet-messages.js';
import { replacedProcesses } from './metrics.js';
import { ReplacementPause } from './replacement-pause.js';
import { addressOf } from './serving-address.js';
import { onStopSignal } from './stop-signals.js';

/** Left of SHUTDOWN_TIMEOUT_MS when those that have not ended by themselves are cut off; the members give up a little earlier. */
const CUT_MARGIN_MS = 100;
/** Starts in a row that may fail while nobody serves. */
const FRUITLESS_STARTS = 5;

/** The place of one process in the fleet: whoever stands there is replaced when he falls. */
interface Place {
  readonly number: number;
  readonly pause: ReplacementPause;
  worker: Worker | undefined;
  /** performance.now() of its first listening; undefined before. */
  servesSinceMs: number | undefined;
  timer: NodeJS.Timeout | undefined;
}

/**
 * Supervises API_PROCESSES processes that share one port, and does nothing else. The first is started alone: what keeps it from serving (a port
 * that is taken) would keep all, is told once, and ends the fleet with code 1. A process that ends without being told to is replaced after
 * a growing pause. SIGTERM and SIGINT go to all; when all have ended, at the latest after SHUTDOWN_TIMEOUT_MS, the fleet ends with code 0.
 */
export function superviseFleet(settings: Settings, logger: LoggerService): void {
  watchForDefects(logger);
  new ProcessFleet(settings, logger).start();
}

class ProcessFleet {
  private readonly places: readonly Place[];
  private readonly figures = new FleetFigures(() => this.sources());
  private stopping = false;
  private complete = false;
  private exitCode = 0;

  constructor(
    private readonly settings: Settings,
    private readonly logger: LoggerService,
  ) {
    this.places = Array.from({ length: settings.apiProcesses }, (_, index) => ({
      number: index + 1,
      pause: new ReplacementPause(),
      worker: undefined,
      servesSinceMs: undefined,
      timer: undefined,
    }));
  }

  start(): void {
    onStopSignal(this.logger, { stop: (signal) => this.stop(signal), force: () => this.cut(1) });
    const [first] = this.places;
    if (first !== undefined) this.fill(first);
  }

  private fill(place: Place): void {
    const worker = cluster.fork(this.environmentOf(place));
    place.worker = worker;
    place.servesSinceMs = undefined;
    worker.on('listening', () => this.listens(place));
    worker.on('message', (message: unknown) => {
      if (isFleetMessage(message) && place.worker === worker) void this.heard(worker, message);
    });
    worker.once('exit', (code, signal) => this.ended(place, worker, { code, signal }));
    worker.on('error', (error) => {
      this.logger.error(error, 'Fleet');
      // A process that could not even be made has no end of its own.
      if (worker.process.pid === undefined) this.ended(place, worker, { code: null, signal: null });
    });
  }

  /** What must be the same in all processes, and what must differ. */
  private environmentOf({ number }: Place): Record<string, string> {
    const { auth, consumer } = this.settings;
    return {
      // Where none is given each process would make its own.
      ...(auth.jwtSecret === undefined ? {} : { AUTH_JWT_SECRET: auth.jwtSecret }),
      ...(consumer.name === undefined ? {} : { CONSUMER_NAME: `${consumer.name}-${number}` }),
    };
  }

  private listens(place: Place): void {
    place.servesSinceMs ??= performance.now();
    if (this.stopping) return;
    for (const other of this.places) {
      if (other.worker === undefined && other.timer === undefined) this.fill(other);
    }
    if (this.complete || this.serving() < this.places.length) return;
    this.complete = true;
    this.logger.log(`${this.places.length} processes serve on ${addressOf(this.settings)}`, 'Fleet');
  }

  private serving(): number {
    return this.places.filter(({ servesSinceMs }) => servesSinceMs !== undefined).length;
  }

  private ended(place: Place, worker: Worker, how: { code: number | null; signal: string | null }): void {
    if (place.worker !== worker) return;
    const servedMs = place.servesSinceMs === undefined ? 0 : performance.now() - place.servesSinceMs;
    place.worker = undefined;
    place.servesSinceMs = undefined;
    this.figures.gone(worker.id);
    if (this.stopping) {
      if (how.code !== null && how.code !== 0) this.exitCode = 1;
      this.exitWhenEmpty();
      return;
    }
    const pauseMs = place.pause.nextMs(servedMs);
    const what = `process ${place.number} (pid ${worker.process.pid}) ended by itself: ${how.signal ?? `code ${how.code}`}`;
    if (this.isFruitless(place, servedMs, how.code)) {
      this.logger.fatal?.(`${what}; it cannot serve, and no other does`, 'Fleet');
      this.cut(1);
    }
    replacedProcesses.inc();
    this.logger.warn(`${what}; another one starts in ${pauseMs} ms`, 'Fleet');
    place.timer = setTimeout(() => {
      place.timer = undefined;
      this.fill(place);
    }, pauseMs);
  }

  /** Whether a further start would end like this one: it gave up by itself before it served, and nobody else serves. */
  private isFruitless({ pause }: Place, servedMs: number, code: number | null): boolean {
    if (servedMs > 0 || this.serving() > 0) return false;
    return code !== null || pause.early >= FRUITLESS_STARTS;
  }

  private stop(signal: string): void {
    this.stopping = true;
    this.logger.log(`${signal}: ending ${this.workers().length} processes`, 'Fleet');
    for (const place of this.places) clearTimeout(place.timer);
    setTimeout(() => {
      this.logger.warn(`not every process ended in time; the rest is left to others`, 'Fleet');
      this.cut(this.exitCode);
    }, this.settings.shutdownTimeoutMs - CUT_MARGIN_MS);
    for (const worker of this.workers()) worker.process.kill('SIGTERM');
    this.exitWhenEmpty();
  }

  private exitWhenEmpty(): void {
    if (this.workers().length > 0) return;
    this.logger.log('stopped', 'Fleet');
    process.exit(this.exitCode);
  }

  private cut(code: number): never {
    for (const worker of this.workers()) worker.process.kill('SIGKILL');
    process.exit(code);
  }

  private workers(): Worker[] {
    return this.places.flatMap(({ worker }) => worker ?? []);
  }

  private sources(): { key: number; ask: (id: number) => void }[] {
    return this.places
      .filter(({ servesSinceMs }) => servesSinceMs !== undefined)
      .flatMap(({ worker }) => worker ?? [])
      .map((worker) => ({ key: worker.id, ask: (id) => send(worker, { kind: 'fleet:figures?', id }) }));
  }

  private async heard(worker: Worker, message: FleetMessage): Promise<void> {
    if (message.kind === 'fleet:figures') this.figures.told(worker.id, message.id, message.figures);
    if (message.kind === 'fleet:metrics?') {
      send(worker, { kind: 'fleet:metrics', id: message.id, text: await this.figures.metrics() });
    }
  }
}

/** A process that cannot be told anything is about to be heard of as ended. */
function send(worker: Worker, message: FleetMessage): void {
  if (worker.isConnected()) worker.send(message, undefined, undefined, () => undefined);
}
