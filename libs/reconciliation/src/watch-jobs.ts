import type { Logger } from '@nestjs/common';
import { isTrouble } from '#http';
import { BackOff } from './back-off.js';

/** One piece of work, at most: what is not done by then goes on from what stands, at the next look. */
const JOB_DEADLINE_MS = 600_000;
/** Jobs of one urgency at the same time. */
const MAX_JOBS = 4;
const MAX_BACK_OFFS = 10_000;

export interface JobOptions {
  /** Waits for urgent work alone: nothing is sold from a closed partition. */
  readonly urgent?: boolean;
  /** Hears of the failure, before the log does. */
  readonly failed?: (error: unknown) => void;
}

/**
 * Work in hand, by what it works on: nothing is worked on twice at once, not too much at a time, and after failures with growing pauses. What fails
 * is logged at a bounded rate.
 */
export class WatchJobs {
  private readonly inHand = new Map<string, { readonly urgent: boolean; readonly end: Promise<void> }>();
  private readonly backOffs = new Map<string, BackOff>();

  /** `stopping` ends the work in hand; `ended` is called after each piece of work. */
  constructor(
    private readonly logger: Logger,
    private readonly stopping: AbortSignal,
    private readonly ended: () => void,
  ) {}

  has(key: string): boolean {
    return this.inHand.has(key);
  }

  /** The ends of all that is in hand; none rejects. */
  ends(): Promise<void>[] {
    return [...this.inHand.values()].map(({ end }) => end);
  }

  /** Whether no pause after a failure is running. */
  isDue(key: string): boolean {
    return this.backOffs.get(key)?.isDue(Date.now()) ?? true;
  }

  /** What failed before is well now. */
  reset(key: string): void {
    this.backOffs.delete(key);
  }

  /** Begins the work unless it is in hand, must wait after a failure, or too much else is in hand. */
  begin(
    key: string,
    work: (signal: AbortSignal) => Promise<void>,
    { urgent = false, failed }: JobOptions = {},
  ): boolean {
    if (this.has(key) || this.isBusy(urgent) || !this.isDue(key)) return false;
    const signal = AbortSignal.any([this.stopping, AbortSignal.timeout(JOB_DEADLINE_MS)]);
    const end = work(signal)
      .then(
        () => this.reset(key),
        (error: unknown) => {
          if (this.stopping.aborted) return;
          failed?.(error);
          this.complain(key, `The rebuild of ${key} failed and is tried again`, error);
        },
      )
      .finally(() => {
        this.inHand.delete(key);
        this.ended();
      });
    this.inHand.set(key, { urgent, end });
    return true;
  }

  /** Notes a failure of `key`: the next pause grows, and the log hears of it where it is new or was not said for long. */
  complain(key: string, what: string, error: unknown): void {
    if (this.backOffs.size >= MAX_BACK_OFFS) this.backOffs.clear();
    const backOff = this.backOffs.get(key) ?? new BackOff();
    this.backOffs.set(key, backOff);
    if (backOff.failed(messageOf(error), Date.now(), isTrouble(error)))
      this.logger.warn(`${what}: ${messageOf(error)}`);
  }

  private isBusy(urgent: boolean): boolean {
    const jobs = [...this.inHand.values()];
    return (urgent ? jobs.filter((job) => job.urgent) : jobs).length >= MAX_JOBS;
  }
}

/** The words of an error. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
