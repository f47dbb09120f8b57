import { Inject, Injectable } from '@nestjs/common';
import { SETTINGS, type Settings } from '#config';
import { EpochRegister, OrderLog, RebuildRegister } from '#sale-register';
import { StockChangeService, VoucherReader, type SaleRecord, type SaleWindow } from '#vouchers';
import { FINDING_KINDS, findingKey, needsFence, type Finding } from './findings.js';
import { driftFindings, lastRun, repairs } from './metrics.js';
import { RebuildService } from './rebuild.service.js';
import { RecordReader } from './record.reader.js';
import {
  countByKind,
  type Inspection,
  type PassReport,
  type Repair,
  type RepairResult,
  type VoucherReport,
} from './reports.js';
import { inWorkingOrder } from './rules.js';
import { isScriptFinding, ScriptRepairs } from './script-repairs.js';
import { VoucherSurvey } from './voucher-survey.js';

/** Looks and repairs in turn, at most: what a repair uncovers is found by the next look. */
const MAX_ROUNDS = 6;
/** Sales that are looked at together. */
export const SALES_PAGE = 200;
/** Wanting buyers of one voucher up to which each is repaired by himself. */
const MAX_SINGLE_REPAIRS = 200;
/** Between the two looks at a suspicion: what is in flight settles meanwhile. */
const PAUSE_MS = 500;

export interface InspectOptions {
  readonly signal?: AbortSignal;
  /** Only these vouchers; all where absent. */
  readonly voucherIds?: readonly string[];
  readonly pauseMs?: number;
}

/** Some sales of a walk. `nextAfterId`: where the next page begins; undefined: that was the last. */
export interface InspectedPage {
  readonly reports: readonly VoucherReport[];
  readonly nextAfterId: string | undefined;
}

export interface RepairOptions {
  readonly actor: string;
  readonly signal?: AbortSignal;
  /** Keys of the findings that an earlier full look named too. */
  readonly seenBefore?: ReadonlySet<string>;
}

/**
 * Compares Redis, stream and database by the rules, and repairs. Safe during traffic, to run twice, by two processes. What the rules are stands in
 * rules.ts, how they are read in VoucherSurvey, how they are mended in ScriptRepairs and RebuildService.
 */
@Injectable()
export class ReconciliationService {
  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly epochs: EpochRegister,
    private readonly log: OrderLog,
    private readonly rebuildRegister: RebuildRegister,
    private readonly vouchers: VoucherReader,
    private readonly stockChanges: StockChangeService,
    private readonly record: RecordReader,
    private readonly surveys: VoucherSurvey,
    private readonly scriptRepairs: ScriptRepairs,
    private readonly rebuilds: RebuildService,
  ) {}

  /** Every partition of the settings and of the record. @throws DatabaseUnavailableError */
  async partitions(): Promise<number[]> {
    const configured = Array.from({ length: this.settings.stream.partitions }, (_, partition) => partition);
    return [...new Set([...configured, ...(await this.record.partitions())])].sort((a, b) => a - b);
  }

  /** Looks at everything, or at some vouchers, and changes nothing. @throws RedisUnavailableError, DatabaseUnavailableError, the signal's reason */
  async inspect({ signal = never(), voucherIds, pauseMs = PAUSE_MS }: InspectOptions = {}): Promise<Inspection> {
    const startedMs = performance.now();
    const vouchers: VoucherReport[] = [];
    const partitions: Finding[] = [];
    const named = voucherIds === undefined ? undefined : await this.salesByPartition(voucherIds);
    for (const partition of named === undefined ? await this.partitions() : named.keys()) {
      const obstacles = await this.obstacles(partition);
      partitions.push(...obstacles);
      if (obstacles.length > 0) continue;
      const pages = named === undefined ? this.allSales(partition) : [named.get(partition)!];
      for await (const sales of pages) {
        vouchers.push(...(await this.surveys.survey(partition, sales, { signal, pauseMs })));
      }
    }
    const findings = inWorkingOrder([...partitions, ...vouchers.flatMap((voucher) => voucher.findings)]);
    if (named === undefined) report(findings);
    const complete = vouchers.every((voucher) => voucher.complete);
    return { vouchers, partitions, findings, complete, durationMs: Math.round(performance.now() - startedMs) };
  }

  /** Looks at some sales of one partition; for a walk that goes on from time to time. Closed partitions have no reports. */
  async inspectPage(
    partition: number,
    window: SaleWindow,
    afterId: string,
    signal: AbortSignal,
  ): Promise<InspectedPage> {
    const sales = await this.vouchers.listSales(partition, window, afterId, SALES_PAGE);
    const reports = await this.surveys.survey(partition, sales, { signal, pauseMs: PAUSE_MS });
    return { reports, nextAfterId: sales.length < SALES_PAGE ? undefined : sales.at(-1)?.voucherId };
  }

  /**
   * Mends what an inspection found, in the order of the rules; each mend looks again by itself. A voucher with more than MAX_SINGLE_REPAIRS
   * wanting buyers is rebuilt as a whole instead. @throws as inspect
   */
  async repair(inspection: Pick<Inspection, 'findings'>, options: RepairOptions): Promise<Repair[]> {
    const done: Repair[] = [];
    const epochs = new Map<number, string | undefined>();
    const many = vouchersWithMany(inspection.findings);
    for (const voucherId of many) {
      const result = await this.rebuildVoucher(voucherId, options);
      for (const finding of inspection.findings)
        if (isOfBuyerAmong(finding, [voucherId])) done.push({ finding, result });
    }
    for (const finding of inWorkingOrder(inspection.findings)) {
      options.signal?.throwIfAborted();
      if (isOfBuyerAmong(finding, many)) continue;
      if (!epochs.has(finding.partition)) epochs.set(finding.partition, await this.openEpoch(finding.partition));
      const epoch = epochs.get(finding.partition);
      const result = await this.mend(finding, epoch, isConfirmedAlone(finding, inspection.findings, options), options);
      if (finding.kind === 'PARTITION_CLOSED') epochs.delete(finding.partition);
      done.push({ finding, result });
    }
    return done;
  }

  /**
   * Looks and repairs in turn until a look finds nothing that can be mended, at most MAX_ROUNDS times. Looks after the first cover the vouchers
   * that were found wanting. @throws as inspect
   */
  async pass(options: { readonly actor: string } & InspectOptions): Promise<PassReport> {
    const before = await this.inspect(options);
    const repairsDone: Repair[] = [];
    let after = before;
    let seenBefore: ReadonlySet<string> = new Set();
    for (let round = 1; round < MAX_ROUNDS && after.findings.length > 0; round += 1) {
      const done = await this.repair(after, { ...options, seenBefore });
      repairsDone.push(...done.filter(({ result }) => result !== 'WAITS'));
      if (done.every(({ result }) => result === 'NOT_REPAIRABLE')) break;
      seenBefore = new Set(after.findings.map(findingKey));
      after = await this.inspect(after.partitions.length > 0 ? options : { ...options, voucherIds: vouchersOf(after) });
    }
    return { before, after, repairs: repairsDone };
  }

  private async mend(
    finding: Finding,
    epoch: string | undefined,
    mayRaiseStock: boolean,
    options: RepairOptions,
  ): Promise<RepairResult> {
    const { actor } = options;
    if (needsFence(finding)) {
      if (finding.kind === 'COUNTER_DRIFT' && !mayRaiseStock) return 'WAITS';
      const result = await this.rebuildVoucher(finding.voucherId, options);
      if (result === 'REPAIRED') repairs.inc({ kind: finding.kind });
      return result;
    }
    if (isScriptFinding(finding)) {
      return epoch === undefined ? 'LOST' : this.scriptRepairs.repair(finding, { epoch, actor, mayRaiseStock });
    }
    const result =
      finding.kind === 'LOG_UNUSABLE'
        ? await this.dropStrayLogs(finding.partition, epoch)
        : await this.mendByRebuild(finding, options);
    if (result === 'REPAIRED') repairs.inc({ kind: finding.kind });
    return result;
  }

  private async mendByRebuild(finding: Finding, options: RepairOptions): Promise<RepairResult> {
    switch (finding.kind) {
      case 'PARTITION_CLOSED': {
        const report = await this.rebuilds.rebuildPartition(finding.partition, { ...options, onlyIfFree: true });
        if (report?.outcome !== 'OPENED') return 'LOST';
        await this.rebuilds.rebuildMissing(finding.partition, options);
        return 'REPAIRED';
      }
      case 'UNITS_DIFFER':
        return this.settleUnits(finding.voucherId, options);
      case 'SALE_MISSING':
      case 'WINDOW_DIFFERS':
        return this.rebuildVoucher(finding.voucherId, options);
      default:
        return 'NOT_REPAIRABLE';
    }
  }

  private async settleUnits(voucherId: string, options: RepairOptions): Promise<RepairResult> {
    const sale = await this.vouchers.findSale(voucherId);
    if (sale === undefined) return 'GONE';
    const { kind } = await this.stockChanges.settle(sale, options.actor);
    switch (kind) {
      case 'APPLIED':
      case 'ALREADY':
        return 'REPAIRED';
      case 'INSUFFICIENT_UNITS':
        // The record withdrew units that are sold by now: it wins, and the stock goes below 0.
        return this.rebuildVoucher(voucherId, options);
      case 'CONFLICT':
      case 'CLOSED':
      case 'NOT_PUBLISHED':
        return 'LOST';
    }
  }

  private async rebuildVoucher(voucherId: string, options: RepairOptions): Promise<RepairResult> {
    const report = await this.rebuilds.rebuildVoucher(voucherId, { ...options, onlyIfFree: true });
    if (report?.outcome === 'UNKNOWN_VOUCHER') return 'GONE';
    return report?.outcome === 'OPENED' ? 'REPAIRED' : 'LOST';
  }

  private async openEpoch(partition: number): Promise<string | undefined> {
    const state = await this.epochs.state(partition);
    return state.kind === 'OPEN' ? state.value : undefined;
  }

  /** Why nothing in the partition can be judged now. */
  private async obstacles(partition: number): Promise<Finding[]> {
    const state = await this.epochs.state(partition);
    if (state.kind !== 'OPEN') return [{ kind: 'PARTITION_CLOSED', partition, state: state.kind }];
    const stray = await this.log.strayLogs(partition);
    return stray.map((log) => ({ kind: 'LOG_UNUSABLE', partition, log }));
  }

  private async dropStrayLogs(partition: number, epoch: string | undefined): Promise<RepairResult> {
    if (epoch === undefined) return 'LOST';
    const dropped = await this.rebuildRegister.dropStrayLogs(partition, epoch);
    return dropped.kind === 'LOST' ? 'LOST' : dropped.keys > 0 ? 'REPAIRED' : 'GONE';
  }

  private async salesByPartition(voucherIds: readonly string[]): Promise<Map<number, SaleRecord[]>> {
    const sales = new Map<number, SaleRecord[]>();
    for (const voucherId of voucherIds) {
      const sale = await this.vouchers.findSale(voucherId);
      if (sale === undefined) continue;
      const group = sales.get(sale.partition);
      if (group === undefined) sales.set(sale.partition, [sale]);
      else group.push(sale);
    }
    return sales;
  }

  private async *allSales(partition: number): AsyncGenerator<SaleRecord[]> {
    for (const window of ['OPEN', 'ENDED'] as const) {
      for (let after: string | undefined = '0'; after !== undefined;) {
        const sales: SaleRecord[] = await this.vouchers.listSales(partition, window, after, SALES_PAGE);
        if (sales.length > 0) yield sales;
        after = sales.length < SALES_PAGE ? undefined : sales.at(-1)?.voucherId;
      }
    }
  }
}

/** The vouchers with so many wanting buyers that one rebuild is less work, and less time for the sale, than that many repairs. */
function vouchersWithMany(findings: readonly Finding[]): string[] {
  const counts = new Map<string, number>();
  for (const finding of findings) {
    if ('userId' in finding) counts.set(finding.voucherId, (counts.get(finding.voucherId) ?? 0) + 1);
  }
  return [...counts].filter(([, count]) => count > MAX_SINGLE_REPAIRS).map(([voucherId]) => voucherId);
}

function isOfBuyerAmong(finding: Finding, voucherIds: readonly string[]): boolean {
  return 'userId' in finding && voucherIds.includes(finding.voucherId);
}

/** Whether an earlier full look named this finding too, and this look nothing else of its voucher. */
function isConfirmedAlone(finding: Finding, all: readonly Finding[], { seenBefore }: RepairOptions): boolean {
  if (seenBefore?.has(findingKey(finding)) !== true || !('voucherId' in finding)) return false;
  return all.filter((other) => 'voucherId' in other && other.voucherId === finding.voucherId).length === 1;
}

function vouchersOf(inspection: Inspection): string[] {
  return inspection.vouchers.filter(({ findings }) => findings.length > 0).map(({ voucherId }) => voucherId);
}

/** Shows the findings of a look at everything as metrics. */
export function report(findings: readonly Finding[]): void {
  const counts = countByKind(findings);
  for (const kind of FINDING_KINDS) driftFindings.set({ kind }, counts.get(kind) ?? 0);
  lastRun.set(Date.now() / 1_000);
}

function never(): AbortSignal {
  return new AbortController().signal;
}
