import { Injectable } from '@nestjs/common';
import { StockLedger } from '#orders';
import { isCanonicalId, type OrderEntry } from '#order-stream';
import { RebuildRegister, SaleRegister } from '#sale-register';
import { explainFinding, type Finding } from './findings.js';
import { repairs } from './metrics.js';
import { RecordReader } from './record.reader.js';
import type { RepairResult } from './reports.js';

type OfKind<K extends Finding['kind']> = Extract<Finding, { kind: K }>;
/** The findings that one script call mends, without closing anything. */
export type ScriptFinding = OfKind<
  'ENTRY_LOST' | 'MARK_LOST' | 'MARK_OF_OTHER_ORDER' | 'RELEASE_LOST' | 'COUNTER_DRIFT'
>;

/** True for a finding that `ScriptRepairs` can mend. */
export function isScriptFinding(finding: Finding): finding is ScriptFinding {
  switch (finding.kind) {
    case 'ENTRY_LOST':
    case 'MARK_LOST':
    case 'MARK_OF_OTHER_ORDER':
    case 'RELEASE_LOST':
    case 'COUNTER_DRIFT':
      return true;
    default:
      return false;
  }
}

export interface RepairContext {
  /** The epoch value that every script must find. */
  readonly epoch: string;
  readonly actor: string;
  /** True where a second full look found this drift again and nothing else: only then the stock may be raised. */
  readonly mayRaiseStock: boolean;
}

interface Done {
  readonly result: RepairResult;
  readonly before?: number;
  readonly after?: number;
}

const GONE: Done = { result: 'GONE' };
const LOST: Done = { result: 'LOST' };
const REPAIRED: Done = { result: 'REPAIRED' };

/**
 * Mends single differences. A reading only suggests: each repair is one script that looks again at what it changes, and one that set a mark
 * reads the row again and releases where the order is no longer active. Each leaves a line in the ledger. Twice, by two processes, during
 * traffic: harmless.
 */
@Injectable()
export class ScriptRepairs {
  constructor(
    private readonly register: SaleRegister,
    private readonly rebuilds: RebuildRegister,
    private readonly record: RecordReader,
    private readonly ledger: StockLedger,
  ) {}

  /** Mends one finding. @throws RedisUnavailableError, DatabaseUnavailableError */
  async repair(finding: ScriptFinding, context: RepairContext): Promise<RepairResult> {
    const { result, before, after } = await this.attempt(finding, context);
    if (result !== 'REPAIRED') return result;
    repairs.inc({ kind: finding.kind });
    const orderId = 'orderId' in finding && isCanonicalId(finding.orderId) ? finding.orderId : undefined;
    await this.ledger.note({
      kind: 'REPAIR',
      voucherId: finding.voucherId,
      ...(orderId === undefined ? {} : { orderId }),
      ...(before === undefined ? {} : { before }),
      ...(after === undefined ? {} : { after }),
      reason: `${finding.kind}${'userId' in finding ? ` of buyer ${finding.userId}` : ''}: ${explainFinding(finding).meaning}`,
      actor: context.actor,
    });
    return result;
  }

  private attempt(finding: ScriptFinding, context: RepairContext): Promise<Done> {
    switch (finding.kind) {
      case 'ENTRY_LOST':
        return this.sendAgain(finding, context);
      case 'MARK_LOST':
        return this.mark(finding, context);
      case 'MARK_OF_OTHER_ORDER':
        return this.remark(finding, context);
      case 'RELEASE_LOST':
        return this.release(finding);
      case 'COUNTER_DRIFT':
        return this.correctStock(finding, context);
    }
  }

  private async sendAgain(finding: OfKind<'ENTRY_LOST'>, { epoch }: RepairContext): Promise<Done> {
    const { kind } = await this.rebuilds.reappend(finding.partition, finding, epoch);
    return kind === 'APPENDED' ? REPAIRED : kind === 'LOST' ? LOST : GONE;
  }

  private async mark(finding: OfKind<'MARK_LOST'>, { epoch }: RepairContext): Promise<Done> {
    const outcome = await this.rebuilds.mark(finding.partition, finding, epoch);
    switch (outcome.kind) {
      case 'LOST':
        return LOST;
      case 'HELD':
      case 'NOT_PUBLISHED':
        return GONE;
      case 'MARKED':
        await this.lookAgain(finding.partition, finding);
        return { result: 'REPAIRED', before: outcome.unitsLeft + 1, after: outcome.unitsLeft };
    }
  }

  private async remark(finding: OfKind<'MARK_OF_OTHER_ORDER'>, { epoch }: RepairContext): Promise<Done> {
    const order = { ...finding, orderId: finding.activeOrderId };
    const { kind } = await this.rebuilds.remark(finding.partition, order, finding.orderId, epoch);
    if (kind === 'LOST') return LOST;
    if (kind === 'CHANGED') return GONE;
    await this.lookAgain(finding.partition, order);
    return REPAIRED;
  }

  private async release(finding: OfKind<'RELEASE_LOST'>): Promise<Done> {
    const { partition, voucherId, userId, orderId, standing } = finding;
    const [now] = await this.record.standings(voucherId, [finding]);
    if (now !== standing) return GONE;
    if (!isCanonicalId(userId) || !isCanonicalId(orderId)) {
      return (await this.rebuilds.dropStrayMark(partition, voucherId, userId, orderId)) ? REPAIRED : GONE;
    }
    const active = (await this.record.activeOrdersOf(voucherId, [userId])).get(userId);
    const outcome = await this.register.release(partition, finding, active);
    return outcome === 'NOT_HELD' ? GONE : REPAIRED;
  }

  private async correctStock(finding: OfKind<'COUNTER_DRIFT'>, context: RepairContext): Promise<Done> {
    if (finding.missing > 0 && !context.mayRaiseStock) return { result: 'WAITS' };
    const { partition, voucherId, missing } = finding;
    const outcome = await this.rebuilds.correctStock(partition, voucherId, missing, context.epoch);
    switch (outcome.kind) {
      case 'LOST':
        return LOST;
      case 'CHANGED':
      case 'NOT_PUBLISHED':
        return GONE;
      case 'CORRECTED':
        return { result: 'REPAIRED', before: outcome.before, after: outcome.after };
    }
  }

  /** After a mark was set: the order may have been rejected or cancelled, and its release have found no mark, while we worked. */
  private async lookAgain(partition: number, order: OrderEntry): Promise<void> {
    const [standing] = await this.record.standings(order.voucherId, [order]);
    if (standing !== 'SETTLED') return;
    const active = (await this.record.activeOrdersOf(order.voucherId, [order.userId])).get(order.userId);
    await this.register.release(partition, order, active);
  }
}
