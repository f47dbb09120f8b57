import { Logger } from '@nestjs/common';
import * as metrics from './metrics.js';
import { RepeatedLog } from './repeated-log.js';
import { describeError, pauseMs } from './retry-policy.js';

/** How one loop fares, as health shows it. Instants are Unix milliseconds. */
export interface LoopStatus {
  /** When the loop last turned; undefined before the first turn. A loop turns at least every few seconds, also when idle. */
  readonly lastLoopMs: number | undefined;
  /** When a turn last went through without failure. */
  readonly lastSuccessMs: number | undefined;
  /** The trouble that holds now, in one line; undefined where there is none. */
  readonly lastError: string | undefined;
  /** Failed turns in a row. */
  readonly consecutiveFailures: number;
}

/** Remembers how the turns of one loop ended, tells metrics and log of it (at a bounded rate), and says how long to pause after a failure. */
export class LoopHealth {
  private readonly logger = new Logger('StreamConsumer');
  private readonly errors: RepeatedLog;
  private failures = 0;
  private lastError: string | undefined;
  private lastLoopMs: number | undefined;
  private lastSuccessMs: number | undefined;

  constructor(private readonly partition: number) {
    this.errors = new RepeatedLog((line) => this.logger.warn(`partition ${partition}: ${line}`));
  }

  get isFailing(): boolean {
    return this.failures > 0;
  }

  /** The loop lives. */
  beat(): void {
    this.lastLoopMs = Date.now();
    metrics.loopHeartbeat.set({ partition: this.partition }, this.lastLoopMs / 1_000);
  }

  /** A turn went through. */
  succeeded(): void {
    this.lastSuccessMs = Date.now();
    if (this.failures > 0) {
      this.logger.log(`partition ${this.partition}: goes on after ${this.failures} failures`);
      this.errors.over();
    }
    this.failures = 0;
    this.lastError = undefined;
  }

  /** A turn failed: how long to wait before the next one, in milliseconds. */
  failed(error: unknown): number {
    this.failures += 1;
    this.lastError = describeError(error);
    metrics.consumerRetries.inc({ from: 'turn' });
    this.note(this.lastError);
    return pauseMs(this.failures, Math.random());
  }

  /** Says something about the loop's work, at a bounded rate. */
  note(text: string): void {
    this.errors.note(text, performance.now());
  }

  status(): LoopStatus {
    const { lastLoopMs, lastSuccessMs, lastError, failures } = this;
    return { lastLoopMs, lastSuccessMs, lastError, consecutiveFailures: failures };
  }
}
