import { randomBytes } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import { classifyDatabaseError } from '#database';
import { OrderRepository } from '#orders';
import { EpochRegister, OrderLog, RebuildRegister, SaleRegister } from '#sale-register';
import { StockChangeService, VoucherReader, type SaleRecord } from '#vouchers';
import { findingKey } from './findings.js';
import { LockKeeper } from './lock-keeper.js';
import { sideBySide } from './pages.js';
import { isLeftBehind } from './partition-status.js';
import { describeTally, emptyTally, measured, type RebuildTally } from './rebuild-report.js';
import type { RebuildOutcome, RebuildReport } from './reports.js';
import { judgeSale } from './rules.js';
import { isScriptFinding, ScriptRepairs } from './script-repairs.js';
import { StreamReader } from './stream-reader.js';
import { RebuildLostError, type RebuildTask, VoucherRebuild } from './voucher-rebuild.js';
import { saleFacts, VoucherSurvey } from './voucher-survey.js';

/** Looks over what was rebuilt, with repairs between, before a rebuild gives up. */
const MAX_SETTLING_ROUNDS = 5;
/** Tries to raise the fence, each as long as the database lets a lock be waited for (1 s). */
const MAX_FENCE_ATTEMPTS = 12;
/** Sales that are rebuilt and looked over together. */
const SALES_PAGE = 200;
/** Sales that are rebuilt side by side: most of a small sale's time is spent waiting for the stores. Several partitions share the database's pool. */
const SALES_AT_ONCE = 4;
/** Between two looks at an open sale: what is in flight settles meanwhile. */
const SETTLING_PAUSE_MS = 200;

export interface RebuildOptions {
  readonly signal?: AbortSignal;
  /** Who asked, for the ledger. */
  readonly actor?: string;
  /** For who saw it closed: undefined where another process holds the lock on this work; a partition that is open by now is left alone. */
  readonly onlyIfFree?: boolean;
}

/**
 * Rebuilds the Redis side of sales from the record and the stream, and opens them. Safe at any time, for any number of processes at once: every
 * script carries the rebuild's token or the epoch's value, the fence keeps batches in hand from being stored, and the opening is a
 * compare-and-set. Who loses a race changes nothing any more.
 */
@Injectable()
export class RebuildService {
  private readonly logger = new Logger(RebuildService.name);

  constructor(
    private readonly epochs: EpochRegister,
    private readonly register: SaleRegister,
    private readonly rebuildRegister: RebuildRegister,
    private readonly log: OrderLog,
    private readonly orders: OrderRepository,
    private readonly vouchers: VoucherReader,
    private readonly stockChanges: StockChangeService,
    private readonly stream: StreamReader,
    private readonly voucherRebuild: VoucherRebuild,
    private readonly surveys: VoucherSurvey,
    private readonly repairs: ScriptRepairs,
    private readonly locks: LockKeeper,
  ) {}

  /**
   * Closes the partition, rebuilds every sale that can still sell, looks them over, and opens the partition. The record keeps for which data
   * history of Redis that was. Sales that are over, and vouchers stored meanwhile, are left to `rebuildMissing`.
   * Undefined only with `onlyIfFree`.
   * @throws RedisUnavailableError, DatabaseUnavailableError, and the signal's reason; what was begun is taken over by the next rebuild
   */
  rebuildPartition(partition: number, options: RebuildOptions = {}): Promise<RebuildReport | undefined> {
    return this.underLock(`rebuild:${partition}`, options, () =>
      measured('partition', partition, async (tally) => {
        const outcome = await this.partition(partition, tally, options);
        if (outcome === 'OPENED') this.logger.log(`Partition ${partition} is rebuilt: ${describeTally(tally)}`);
        return outcome;
      }),
    );
  }

  /**
   * Rebuilds one sale while its partition stays open; only this sale is closed meanwhile. With `onlyIfNeeded` a sale that is sound is left
   * alone. Undefined only with `onlyIfFree`.
   * @throws as rebuildPartition
   */
  rebuildVoucher(
    voucherId: string,
    options: RebuildOptions & { readonly onlyIfNeeded?: boolean } = {},
  ): Promise<RebuildReport | undefined> {
    return this.underLock(`rebuild-voucher:${voucherId}`, options, async () => {
      const sale = await this.vouchers.findSale(voucherId);
      return measured('voucher', sale?.partition ?? 0, async (tally) => {
        if (sale === undefined) return 'UNKNOWN_VOUCHER';
        if (options.onlyIfNeeded === true && (await this.isSound(sale))) return 'NOT_NEEDED';
        return this.alone(sale.partition, [sale], tally, options);
      });
    });
  }

  /** Rebuilds, while the partition stays open, the sales that the register lacks or cannot use: ended ones, and late ones. Answers how many. */
  async rebuildMissing(partition: number, options: RebuildOptions = {}): Promise<number> {
    let rebuilt = 0;
    for await (const sales of this.salesOf(partition, 'ALL')) {
      options.signal?.throwIfAborted();
      const readings = await this.register.readSales(
        partition,
        sales.map(({ voucherId }) => voucherId),
      );
      const missing = sales.filter((_, index) => saleFacts(readings[index]!).kind === 'UNUSABLE');
      if (missing.length === 0) continue;
      const tally = emptyTally();
      const outcome = await this.alone(partition, missing, tally, options);
      if (outcome !== 'OPENED' && outcome !== 'UNSETTLED') return rebuilt;
      rebuilt += tally.vouchers;
    }
    return rebuilt;
  }

  private async partition(partition: number, tally: RebuildTally, options: RebuildOptions): Promise<RebuildOutcome> {
    const state = await this.epochs.state(partition);
    if (state.kind === 'NO_HISTORY' || state.kind === 'NO_RIGHT') return 'NO_HISTORY';
    if (state.kind === 'OPEN' && options.onlyIfFree === true) {
      // Read after the register: it is written before an opening, so another Redis that it names was opened later than this one.
      const rebuilt = await this.orders.rebuiltHistories();
      if (!isLeftBehind(partition, state.value, rebuilt)) return 'NOT_NEEDED';
    }
    const token = newToken();
    const begun = await this.epochs.begin(partition, token, state.value);
    if (begun.kind === 'CHANGED') return 'LOST';
    if (begun.kind !== 'BEGUN') return 'NO_HISTORY';
    return unlessLost(async () => {
      const task = await this.prepare(partition, begun.value, token, tally, options, begun.history);
      const ids: string[] = [];
      for await (const sales of this.salesOf(partition, 'OPEN')) {
        await sideBySide(sales, SALES_AT_ONCE, (sale) => this.rebuildSale(task, sale));
        if (!(await this.settle(task, sales, 0))) return 'UNSETTLED';
        ids.push(...sales.map(({ voucherId }) => voucherId));
      }
      return this.open(task, ids);
    });
  }

  /** Rebuilds sales under one raise of the fence while their partition stays open. */
  private async alone(
    partition: number,
    sales: readonly SaleRecord[],
    tally: RebuildTally,
    options: RebuildOptions,
  ): Promise<RebuildOutcome> {
    const state = await this.epochs.state(partition);
    if (state.kind === 'NO_HISTORY' || state.kind === 'NO_RIGHT') return 'NO_HISTORY';
    if (state.kind !== 'OPEN') return 'PARTITION_CLOSED';
    const epoch = state.value;
    const token = newToken();
    return unlessLost(async () => {
      // All of them first: what is read of the stream afterwards is then all that there can be.
      await sideBySide(sales, SALES_AT_ONCE, ({ voucherId }) =>
        this.voucherRebuild.begin(partition, voucherId, epoch, token),
      );
      const task = await this.prepare(partition, epoch, token, tally, options);
      await sideBySide(sales, SALES_AT_ONCE, (sale) => this.voucherRebuild.complete(task, sale));
      return (await this.settle(task, sales, SETTLING_PAUSE_MS)) ? 'OPENED' : 'UNSETTLED';
    });
  }

  /** Raises the fence, then reads the stream: what a batch in hand holds is stored before this, or not at all. */
  private async prepare(
    partition: number,
    epoch: string,
    token: string,
    tally: RebuildTally,
    { signal = new AbortController().signal, actor = 'rebuild' }: RebuildOptions,
    history?: string,
  ): Promise<RebuildTask> {
    signal.throwIfAborted();
    if ((await this.rebuildRegister.dropStrayLogs(partition, epoch)).kind === 'LOST') throw new RebuildLostError();
    await this.raiseFence(partition, signal, history);
    const onTheWay = await this.stream.ordersOnTheWay(partition, signal);
    return { partition, epoch, token, onTheWay, signal, actor, tally };
  }

  /** Waits for the transactions under the old number; one that a locked row holds up may outlast several tries. */
  private async raiseFence(partition: number, signal: AbortSignal, history: string | undefined): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      signal.throwIfAborted();
      try {
        await this.orders.raiseEpochNumber(partition, history);
        return;
      } catch (error) {
        if (classifyDatabaseError(error) !== 'LOCK_TIMEOUT' || attempt >= MAX_FENCE_ATTEMPTS) throw error;
      }
    }
  }

  private async rebuildSale(task: RebuildTask, sale: SaleRecord): Promise<void> {
    await this.voucherRebuild.begin(task.partition, sale.voucherId, task.epoch, task.token);
    await this.voucherRebuild.complete(task, sale);
  }

  /** Looks the sales over and repairs until nothing is found. False where differences come up again and again. */
  private async settle(task: RebuildTask, sales: readonly SaleRecord[], pauseMs: number): Promise<boolean> {
    let wanting = sales;
    let seenBefore: ReadonlySet<string> = new Set();
    for (let round = 0; round < MAX_SETTLING_ROUNDS; round += 1) {
      const reports = await this.surveys.survey(task.partition, wanting, { signal: task.signal, pauseMs });
      const unsettled = new Set<string>();
      const seen = new Set(reports.flatMap(({ findings }) => findings.map(findingKey)));
      for (const { findings, voucherId, complete } of reports) {
        if (!complete) unsettled.add(voucherId);
        for (const finding of findings) {
          if (isScriptFinding(finding)) {
            unsettled.add(voucherId);
            const { epoch, actor } = task;
            const mayRaiseStock = findings.length === 1 && seenBefore.has(findingKey(finding));
            await this.repairs.repair(finding, { epoch, actor, mayRaiseStock });
          } else if (finding.kind === 'UNITS_DIFFER') {
            await this.stockChanges.settle(
              sales.find((sale) => sale.voucherId === voucherId)!,
              task.actor,
            );
          } else if (finding.kind === 'SALE_MISSING') {
            unsettled.add(voucherId);
          }
        }
      }
      if (unsettled.size === 0) return true;
      wanting = wanting.filter(({ voucherId }) => unsettled.has(voucherId));
      seenBefore = seen;
    }
    return false;
  }

  private async open(task: RebuildTask, voucherIds: readonly string[]): Promise<RebuildOutcome> {
    task.signal.throwIfAborted();
    const opened = await this.epochs.open(task.partition, task.epoch, voucherIds);
    switch (opened.kind) {
      case 'OPENED':
        return 'OPENED';
      case 'LOST':
        return 'LOST';
      case 'INCOMPLETE':
        // Keys vanished since they were written: everything is doubtful again.
        return 'UNSETTLED';
    }
  }

  private async isSound(sale: SaleRecord): Promise<boolean> {
    if ((await this.log.strayLogs(sale.partition)).length > 0) return false;
    const facts = saleFacts(await this.register.readSale(sale.partition, sale.voucherId));
    const { voucherId, partition, units, stock } = sale;
    return (
      judgeSale({ voucherId, partition, sale: facts, record: { ...sale, activeOrders: units - stock } }).length === 0
    );
  }

  private async *salesOf(partition: number, window: 'OPEN' | 'ALL'): AsyncGenerator<SaleRecord[]> {
    for (let after = '0'; ;) {
      const sales = await this.vouchers.listSales(partition, window, after, SALES_PAGE);
      const last = sales.at(-1);
      if (last === undefined) return;
      yield sales;
      if (sales.length < SALES_PAGE) return;
      after = last.voucherId;
    }
  }

  private underLock<T>(
    resource: string,
    { onlyIfFree }: RebuildOptions,
    work: () => Promise<T>,
  ): Promise<T | undefined> {
    return onlyIfFree === true ? this.locks.ifFree(resource, work) : this.locks.orWithout(resource, work);
  }
}

async function unlessLost(work: () => Promise<RebuildOutcome>): Promise<RebuildOutcome> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof RebuildLostError) return 'LOST';
    throw error;
  }
}

function newToken(): string {
  return randomBytes(16).toString('hex');
}
