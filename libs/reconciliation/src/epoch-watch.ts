import { Inject, Injectable, Logger, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { SETTINGS, type Settings } from '#config';
import { Database } from '#database';
import { OrderRepository } from '#orders';
import { EpochRegister, type EpochState, type RebuildRequest } from '#sale-register';
import { partitionsClosed } from './metrics.js';
import { isLeftBehind, type PartitionCondition, type PartitionStatus } from './partition-status.js';
import { RebuildService } from './rebuild.service.js';
import { RecordReader } from './record.reader.js';
import { ReconciliationService } from './reconciliation.service.js';
import { TimelineWatch } from './timeline-watch.js';
import { RebuildLostError } from './voucher-rebuild.js';
import { messageOf, WatchJobs } from './watch-jobs.js';

const LOOK_EVERY_MS = 1_000;
/** Between looks for partitions that the record names and the settings do not. */
const LIST_EVERY_MS = 5_000;
/** Between looks while a partition is closed: an empty start opens as soon as the database is there. */
const LOOK_AGAIN_MS = 200;
/** Between looks that were asked for. */
const SHORTEST_PAUSE_MS = 20;
/** Wishes kept; a wish that finds the list full is made again by the next purchase that is refused. */
const MAX_WISHES = 1_000;

/**
 * Sees to it that every partition is open. Each second, and when asked, it looks at every known partition's epoch; where one is closed it has it rebuilt and
 * opened, with growing pauses after failures. Two processes may do so at once. Also serves the wishes of the request wing, and has
 * everything reconciled when the database moved to another timeline. Never throws.
 */
@Injectable()
export class EpochWatch implements OnModuleInit, OnModuleDestroy {
  private readonly logger = new Logger(EpochWatch.name);
  private readonly statuses = new Map<number, PartitionStatus>();
  private readonly wishes = new Map<string, RebuildRequest>();
  private readonly stopping = new AbortController();
  private readonly jobs = new WatchJobs(this.logger, this.stopping.signal, () => this.wakeUp());
  private known: number[];
  private listAgainMs = 0;
  private loop: Promise<void> | undefined;
  private look: Promise<void> | undefined;
  private wake: (() => void) | undefined;
  private woken = false;
  private unsubscribe: (() => void) | undefined;

  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly epochs: EpochRegister,
    private readonly rebuilds: RebuildService,
    private readonly reconciliation: ReconciliationService,
    private readonly record: RecordReader,
    private readonly database: Database,
    private readonly timeline: TimelineWatch,
    private readonly orders: OrderRepository,
  ) {
    this.known = Array.from({ length: settings.stream.partitions }, (_, partition) => partition);
  }

  onModuleInit(): void {
    this.start();
  }

  async onModuleDestroy(): Promise<void> {
    await this.stop();
  }

  /** Begins to look. Twice is harmless; after `stop` it does nothing. */
  start(): void {
    if (this.loop !== undefined || this.stopping.signal.aborted) return;
    this.unsubscribe = this.epochs.onRebuildRequested((request) => this.want(request));
    this.loop = this.run();
  }

  /** Ends the looking and the work in hand; an unfinished rebuild is taken over by another process. Twice, or before the start, is harmless. */
  async stop(): Promise<void> {
    this.unsubscribe?.();
    this.stopping.abort();
    this.wakeUp();
    let timer: NodeJS.Timeout | undefined;
    const limit = new Promise((resolve) => (timer = setTimeout(resolve, this.settings.shutdownTimeoutMs / 2)));
    await Promise.race([Promise.allSettled([this.loop, ...this.jobs.ends()]), limit]);
    clearTimeout(timer);
  }

  /** Every known partition as last seen; a partition not looked at yet is missing. */
  status(): PartitionStatus[] {
    return [...this.statuses.values()].sort((a, b) => a.partition - b.partition);
  }

  /** One look at everything, and the end of the work it began. A call during a look joins it. */
  async runOnce(): Promise<void> {
    await this.lookOnce();
    await Promise.all(this.jobs.ends());
  }

  private want(request: RebuildRequest): void {
    const key = request.voucherId === undefined ? `partition ${request.partition}` : `voucher ${request.voucherId}`;
    if (this.wishes.size < MAX_WISHES && !this.jobs.has(key)) this.wishes.set(key, request);
    this.wakeUp();
  }

  private async run(): Promise<void> {
    while (!this.stopping.signal.aborted) {
      await this.lookOnce();
      const open = [...this.statuses.values()].every(({ condition }) => condition === 'OPEN');
      await this.pause(open ? LOOK_EVERY_MS : LOOK_AGAIN_MS);
    }
  }

  /** Until the time is over, or somebody asks; never shorter than SHORTEST_PAUSE_MS while running. */
  private async pause(ms: number): Promise<void> {
    if (this.stopping.signal.aborted) return;
    await new Promise((resolve) => setTimeout(resolve, SHORTEST_PAUSE_MS));
    if (!this.woken && !this.stopping.signal.aborted) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        this.wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.wake = undefined;
    this.woken = false;
  }

  private wakeUp(): void {
    this.woken = true;
    this.wake?.();
  }

  private lookOnce(): Promise<void> {
    this.look ??= this.lookAtEverything().finally(() => (this.look = undefined));
    return this.look;
  }

  private async lookAtEverything(): Promise<void> {
    const ready = this.database.isReady();
    const rebuilt = ready ? await this.lookAtDatabase() : undefined;
    await Promise.all(this.known.map((partition) => this.lookAt(partition, rebuilt)));
    partitionsClosed.set(this.status().filter(({ condition }) => condition !== 'OPEN').length);
    for (const [key, wish] of [...this.wishes]) {
      const { voucherId } = wish;
      if (voucherId === undefined) this.wishes.delete(key);
      else if (ready && this.jobs.begin(key, (signal) => this.grant(key, wish, voucherId, signal)))
        this.wishes.delete(key);
    }
  }

  /** Answers for which Redis each partition was last rebuilt; empty where that cannot be read now. */
  private async lookAtDatabase(): Promise<ReadonlyMap<number, string>> {
    try {
      if (performance.now() >= this.listAgainMs) {
        const named = await this.record.partitions();
        this.known = [...new Set([...this.known, ...named])].sort((a, b) => a - b);
        this.listAgainMs = performance.now() + LIST_EVERY_MS;
      }
      if (await this.timeline.moved()) {
        this.logger.warn('The database is on another timeline: everything is reconciled with it');
        this.jobs.begin('timeline', async () => void (await this.reconciliation.pass({ actor: 'timeline-change' })));
      }
      return await this.orders.rebuiltHistories();
    } catch (error) {
      this.jobs.complain('database', 'The partitions of the record cannot be read', error);
      return new Map();
    }
  }

  /** `rebuilt`: for which Redis the record says that each partition was last rebuilt; read before, undefined while the database is away. */
  private async lookAt(partition: number, rebuilt: ReadonlyMap<number, string> | undefined): Promise<void> {
    const key = `partition ${partition}`;
    if (this.jobs.has(key)) return;
    let state: EpochState;
    try {
      state = await this.epochs.state(partition);
    } catch (error) {
      return this.note(partition, 'UNREACHABLE', messageOf(error));
    }
    switch (state.kind) {
      case 'OPEN':
        if (isLeftBehind(partition, state.value, rebuilt ?? new Map())) return this.demandRebuild(partition, key);
        this.jobs.reset(key);
        return this.note(partition, 'OPEN');
      case 'NO_HISTORY':
        return this.note(partition, 'NOT_SUPPORTED', 'the Redis server has no master_replid');
      case 'NO_RIGHT':
        return this.note(partition, 'NOT_SUPPORTED', 'the Redis user may not call INFO');
      case 'CLOSED':
      case 'RECONCILING':
        if (rebuilt === undefined) return this.note(partition, 'WAITING_FOR_DATABASE', 'a rebuild needs the database');
        this.demandRebuild(partition, key);
    }
  }

  private demandRebuild(partition: number, key: string): void {
    if (!this.jobs.isDue(key)) return;
    const begun = this.jobs.begin(key, (signal) => this.rebuildPartition(partition, signal), {
      urgent: true,
      failed: (error) => this.note(partition, 'FAILING', messageOf(error)),
    });
    if (!begun) this.note(partition, 'CLOSED');
  }

  private async rebuildPartition(partition: number, signal: AbortSignal): Promise<void> {
    this.note(partition, 'REBUILDING');
    const report = await this.rebuilds.rebuildPartition(partition, { signal, onlyIfFree: true });
    switch (report?.outcome) {
      case 'OPENED':
      case 'NOT_NEEDED':
        this.note(partition, 'OPEN');
        // Ended sales, and vouchers stored while we worked: the partition sells meanwhile.
        this.jobs.begin(`what partition ${partition} still lacks`, async (late) => {
          await this.rebuilds.rebuildMissing(partition, { signal: late });
        });
        return;
      case undefined:
        return this.note(partition, 'REBUILDING', 'another process rebuilds it');
      case 'LOST':
        return this.note(partition, 'CLOSED', 'the rebuild was overtaken and starts over');
      default:
        throw new Error(`the rebuild ended with ${report?.outcome}`);
    }
  }

  /** Rebuilds the voucher; where that fails or is overtaken the wish stays, for its sale may stand closed. */
  private async grant(key: string, wish: RebuildRequest, voucherId: string, signal: AbortSignal): Promise<void> {
    try {
      await this.rebuildVoucher(voucherId, signal);
    } catch (error) {
      this.wishes.set(key, wish);
      throw error;
    }
  }

  private async rebuildVoucher(voucherId: string, signal: AbortSignal): Promise<void> {
    const report = await this.rebuilds.rebuildVoucher(voucherId, { signal, onlyIfFree: true, onlyIfNeeded: true });
    if (report?.outcome === 'UNSETTLED') throw new Error('differences came up again after each repair');
    if (report?.outcome === 'LOST') throw new RebuildLostError();
  }

  private note(partition: number, condition: PartitionCondition, reason?: string): void {
    const last = this.statuses.get(partition);
    if (last?.condition === condition && last.reason === reason) return;
    const sinceMs = last?.condition === condition ? last.sinceMs : Date.now();
    this.statuses.set(partition, { partition, condition, reason, sinceMs });
    if (last?.condition === condition) return;
    this.logger.log(`Partition ${partition}: ${condition}${reason === undefined ? '' : ` (${reason})`}`);
  }
}
