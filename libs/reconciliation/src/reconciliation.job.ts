import { Inject, Injectable, Logger, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { SETTINGS, type Settings } from '#config';
import { Database } from '#database';
import { EpochRegister } from '#sale-register';
import { BackOff } from './back-off.js';
import type { Finding } from './findings.js';
import { LockKeeper } from './lock-keeper.js';
import { ReconciliationService, report } from './reconciliation.service.js';
import { countByKind } from './reports.js';

const RUN_EVERY_MS = 60_000;
/** No page is begun after this time of one run; the next run goes on from there. */
const RUN_BUDGET_MS = 10_000;
/** A run rests this many times as long as it took, so that looking never takes more than a small part of the stores' time. */
const REST_FACTOR = 5;
const RUN_DEADLINE_MS = 600_000;
const WINDOWS = ['OPEN', 'ENDED'] as const;

/** What one run came to. SKIPPED: another instance holds the lock, or a store is away. */
export type JobRun =
  | { readonly kind: 'SKIPPED'; readonly reason: string }
  | { readonly kind: 'DONE'; readonly findings: readonly Finding[]; readonly repaired: number };

/**
 * Reconciles every 60 s, one instance at a time (the lock only saves work). A run walks the sales that can still sell, then the ended ones, for as long as its
 * budget lasts, and goes on where the last one ended. Closed partitions are EpochWatch's. Never throws.
 */
@Injectable()
export class ReconciliationJob implements OnModuleInit, OnModuleDestroy {
  private readonly logger = new Logger(ReconciliationJob.name);
  private readonly backOff = new BackOff();
  private readonly stopping = new AbortController();
  /** Where each walk goes on: by partition and window, the last voucher of the last page. */
  private readonly cursors = new Map<string, string>();
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<JobRun> | undefined;

  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly reconciliation: ReconciliationService,
    private readonly epochs: EpochRegister,
    private readonly database: Database,
    private readonly locks: LockKeeper,
  ) {}

  onModuleInit(): void {
    this.scheduleNext(RUN_EVERY_MS);
  }

  /** No further run; the one in hand ends at its next page. */
  async onModuleDestroy(): Promise<void> {
    this.stopping.abort();
    clearTimeout(this.timer);
    let limit: NodeJS.Timeout | undefined;
    const late = new Promise((resolve) => (limit = setTimeout(resolve, this.settings.shutdownTimeoutMs / 2)));
    await Promise.race([this.running, late]);
    clearTimeout(limit);
  }

  /** One run now. A call during a run joins it. */
  runOnce(): Promise<JobRun> {
    this.running ??= this.run().finally(() => (this.running = undefined));
    return this.running;
  }

  private scheduleNext(afterMs: number): void {
    if (this.stopping.signal.aborted) return;
    this.timer = setTimeout(() => void this.runAndSchedule(), afterMs);
    this.timer.unref();
  }

  private async runAndSchedule(): Promise<void> {
    const startedMs = performance.now();
    await this.runOnce();
    this.scheduleNext(Math.max(RUN_EVERY_MS, REST_FACTOR * (performance.now() - startedMs)));
  }

  private async run(): Promise<JobRun> {
    if (!this.database.isReady()) return { kind: 'SKIPPED', reason: 'the database is away' };
    try {
      const done = await this.locks.ifFree('reconciliation:all', () => this.walk());
      this.backOff.reset();
      return done ?? { kind: 'SKIPPED', reason: 'another instance reconciles' };
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (!this.stopping.signal.aborted && this.backOff.failed(reason, Date.now())) {
        this.logger.warn(`The reconciliation stopped and goes on at its next run: ${reason}`);
      }
      return { kind: 'SKIPPED', reason };
    }
  }

  private async walk(): Promise<JobRun> {
    const signal = AbortSignal.any([this.stopping.signal, AbortSignal.timeout(RUN_DEADLINE_MS)]);
    const endMs = performance.now() + RUN_BUDGET_MS;
    const findings: Finding[] = [];
    const partitions = await this.reconciliation.partitions();
    for (const window of WINDOWS) {
      for (const partition of partitions) {
        if ((await this.epochs.state(partition)).kind !== 'OPEN') continue;
        findings.push(...(await this.walkLane(partition, window, endMs, signal)));
      }
    }
    report(findings);
    if (findings.length === 0) return { kind: 'DONE', findings, repaired: 0 };
    return { kind: 'DONE', findings, repaired: await this.repair(findings, signal) };
  }

  /** Looks at least at one page, then at more while there is time. */
  private async walkLane(
    partition: number,
    window: (typeof WINDOWS)[number],
    endMs: number,
    signal: AbortSignal,
  ): Promise<Finding[]> {
    const lane = `${partition}/${window}`;
    const findings: Finding[] = [];
    let after: string | undefined = this.cursors.get(lane) ?? '0';
    do {
      const page = await this.reconciliation.inspectPage(partition, window, after, signal);
      findings.push(...page.reports.flatMap((voucher) => voucher.findings));
      after = page.nextAfterId;
      this.cursors.set(lane, after ?? '0');
    } while (after !== undefined && performance.now() < endMs);
    return findings;
  }

  private async repair(findings: readonly Finding[], signal: AbortSignal): Promise<number> {
    const voucherIds = [...new Set(findings.flatMap((finding) => ('voucherId' in finding ? [finding.voucherId] : [])))];
    const { repairs, after } = await this.reconciliation.pass({ actor: 'reconciliation', signal, voucherIds });
    const repaired = repairs.filter(({ result }) => result === 'REPAIRED').length;
    const kinds = [...countByKind(findings)].map(([kind, count]) => `${count} ${kind}`).join(', ');
    this.logger.warn(`Differences found: ${kinds}; ${repaired} repairs, ${after.findings.length} left`);
    return repaired;
  }
}
