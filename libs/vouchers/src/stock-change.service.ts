import { Injectable, Logger } from '@nestjs/common';
import { Database, DatabaseUnavailableError, type Session } from '#database';
import { invalidArgument, ProblemException } from '#http';
import { StockLedger, type NewLedgerEntry } from '#orders';
import { RedisUnavailableError } from '#redis';
import type { RestockOutcome } from '#sale-register';
import { IdempotencyKeyRepository, type KeptAnswer, type NamedCall } from './idempotency-key.repository.js';
import { SalePublisher } from './sale.publisher.js';
import { VoucherReader } from './voucher.reader.js';
import { VoucherRepository, type VoucherRecord } from './voucher.repository.js';
import type { VoucherAnswer } from './voucher.service.js';
import { inUsualOrder, voucherView } from './voucher-view.js';
import { VOUCHER_LIMITS, type SaleRecord, type VoucherView } from './voucher.types.js';

/** The kept answer of a change: the voucher, or that too few units were free. */
type ChangeAnswer = KeptAnswer<VoucherView | { readonly unitsLeft: number }>;
type AppendToLedger = (entry: NewLedgerEntry) => Promise<void>;

const REFUSED = 409;

/**
 * Changes the units offered, in both stores, relative to what is there.
 *
 * An increase is committed in the database first and applied to the register afterwards: a right is never given out before the record grants
 * it. A decrease is taken from the register first, inside the transaction: a unit is never withdrawn that somebody has just bought. Each change has
 * a version of its own, so that repeats and reconcilers apply it once.
 */
@Injectable()
export class StockChangeService {
  private readonly logger = new Logger(StockChangeService.name);

  constructor(
    private readonly database: Database,
    private readonly vouchers: VoucherRepository,
    private readonly keys: IdempotencyKeyRepository,
    private readonly ledger: StockLedger,
    private readonly reader: VoucherReader,
    private readonly publisher: SalePublisher,
  ) {}

  /**
   * Adds `delta` units (withdraws them where it is below 0). Throws VOUCHER_NOT_FOUND, INSUFFICIENT_UNITS, INVALID_ARGUMENT where the units would
   * pass their limit, UNAVAILABLE where a decrease cannot be asked of the register; DatabaseUnavailableError; and what
   * `IdempotencyKeyRepository.once` throws. An increase that the register did not hear stands: reconciliation applies it.
   */
  async change(voucherId: string, delta: number, actor: string, call?: NamedCall): Promise<VoucherAnswer> {
    const answer =
      delta > 0
        ? await this.increase(voucherId, delta, actor, call)
        : await this.decrease(voucherId, delta, actor, call);
    this.reader.forget(voucherId);
    if (answer.status === REFUSED) {
      throw new ProblemException('INSUFFICIENT_UNITS', { unitsLeft: answer.body.unitsLeft });
    }
    return { voucher: inUsualOrder(answer.body as VoucherView), replayed: answer.replayed };
  }

  /**
   * Brings units and version of both stores together where a change was cut in half, and answers what the register says then. The higher units
   * win: the register can be above the record only where the record lost a commit; it is below only where a decrease was never committed, and
   * what has no record has no effect. The row takes a version above both. Idempotent; safe during traffic.
   * @throws RedisUnavailableError, DatabaseUnavailableError
   */
  async settle(sale: SaleRecord, actor: string): Promise<RestockOutcome> {
    const first = await this.publisher.restock(sale.partition, sale);
    if (first.kind !== 'CONFLICT') return first;
    const settled = await this.database.transaction(async (manager, session) => {
      const record = await this.vouchers.lock(session, sale.voucherId);
      if (record === undefined || record.sale.unitsVersion > first.unitsVersion) return record?.sale;
      if (record.sale.unitsVersion === first.unitsVersion && record.sale.units === first.units) return record.sale;
      const changed = withUnits(record, Math.max(record.sale.units, first.units), first.unitsVersion + 1);
      const append: AppendToLedger = (entry) => this.ledger.append(manager, entry);
      await this.store(session, append, record, changed, 'a change of units was cut in half', actor);
      return changed.sale;
    });
    return settled === undefined ? { kind: 'NOT_PUBLISHED' } : this.publisher.restock(settled.partition, settled);
  }

  private async increase(voucherId: string, delta: number, actor: string, call: NamedCall | undefined) {
    const before = await this.vouchers.find(voucherId);
    if (before === undefined) throw new ProblemException('VOUCHER_NOT_FOUND');
    // Read before the row is held: the answer is kept in the transaction, and nothing slow may happen inside it.
    const live = (await this.reader.liveSales([before.sale])).get(voucherId);
    let changed: VoucherRecord | undefined;
    const answer = await this.database.transaction((manager, session) =>
      this.keys.once(session, call, async (): Promise<ChangeAnswer> => {
        const record = await this.hold(session, voucherId);
        changed = withUnits(record, record.sale.units + delta, record.sale.unitsVersion + 1);
        if (changed.sale.units > VOUCHER_LIMITS.units) {
          const detail = `the units offered would be ${changed.sale.units}, more than ${VOUCHER_LIMITS.units}`;
          throw invalidArgument({ pointer: '/delta', detail });
        }
        const append: AppendToLedger = (entry) => this.ledger.append(manager, entry);
        await this.store(session, append, record, changed, 'units added', actor);
        const { units } = changed.sale;
        const then = live === undefined ? undefined : { ...live, units, unitsLeft: live.unitsLeft + delta };
        return { status: 200, body: voucherView(changed, then) };
      }),
    );
    await this.applyIncrease(voucherId, changed?.sale, actor);
    return answer;
  }

  /** The record stands already: nothing that happens here makes the change undone. */
  private async applyIncrease(voucherId: string, changed: SaleRecord | undefined, actor: string): Promise<void> {
    let sale = changed;
    try {
      // A repeated call: the first one may have ended between the two stores.
      sale ??= await this.reader.findSale(voucherId);
      if (sale === undefined) return;
      const { kind } = await this.settle(sale, actor);
      if (kind === 'APPLIED' || kind === 'ALREADY') return;
      this.logger.warn(`voucher ${voucherId}: the register will hear of its new units later: ${kind}`);
    } catch (error) {
      if (!(error instanceof RedisUnavailableError) && !(error instanceof DatabaseUnavailableError)) throw error;
      this.logger.warn(`voucher ${voucherId}: the register will hear of its new units later: ${error.message}`);
    }
    if (sale !== undefined) this.publisher.requestRebuild(sale);
  }

  private decrease(voucherId: string, delta: number, actor: string, call: NamedCall | undefined) {
    return this.database.transaction((manager, session) =>
      this.keys.once(session, call, async (): Promise<ChangeAnswer> => {
        const record = await this.hold(session, voucherId);
        const { units, stock } = record.sale;
        if (units + delta < 0 || stock + delta < 0) return { status: REFUSED, body: { unitsLeft: stock } };
        const taken = await this.takeFromRegister(record, delta);
        if (taken.changed === undefined) return { status: REFUSED, body: { unitsLeft: taken.unitsLeft } };
        const append: AppendToLedger = (entry) => this.ledger.append(manager, entry);
        await this.store(session, append, record, taken.changed, 'units withdrawn', actor);
        const live = { units: taken.changed.sale.units, unitsLeft: taken.unitsLeft, nowMs: record.nowMs };
        return { status: 200, body: voucherView(taken.changed, live) };
      }),
    );
  }

  /** Withdraws the units in Redis; `changed` is the row to store, undefined where fewer units are free. */
  private async takeFromRegister(
    record: VoucherRecord,
    delta: number,
  ): Promise<{ readonly changed?: VoucherRecord; readonly unitsLeft: number }> {
    const { units, unitsVersion, partition } = record.sale;
    let changed = withUnits(record, units + delta, unitsVersion + 1);
    let outcome = await this.publisher.restock(partition, changed.sale);
    if (outcome.kind === 'CONFLICT') {
      // As in `settle`: the higher units are the base, and the version goes above the register's. Once: the row is held.
      changed = withUnits(record, Math.max(units, outcome.units) + delta, outcome.unitsVersion + 1);
      outcome = await this.publisher.restock(partition, changed.sale);
    }
    switch (outcome.kind) {
      case 'APPLIED':
      case 'ALREADY':
        return { changed, unitsLeft: outcome.unitsLeft };
      case 'INSUFFICIENT_UNITS':
        return { unitsLeft: Math.max(0, outcome.unitsLeft) };
      case 'NOT_PUBLISHED':
      case 'CLOSED':
      case 'CONFLICT':
        this.publisher.requestRebuild(record.sale);
        throw new ProblemException('UNAVAILABLE');
    }
  }

  private async hold(session: Session, voucherId: string): Promise<VoucherRecord> {
    const record = await this.vouchers.lock(session, voucherId);
    if (record === undefined) throw new ProblemException('VOUCHER_NOT_FOUND');
    return record;
  }

  private async store(
    session: Session,
    append: AppendToLedger,
    before: VoucherRecord,
    after: VoucherRecord,
    reason: string,
    actor: string,
  ): Promise<void> {
    await this.vouchers.changeUnits(session, after.sale);
    await append({
      kind: 'RESTOCK',
      voucherId: after.sale.voucherId,
      before: before.sale.units,
      after: after.sale.units,
      reason,
      actor,
    });
  }
}

/** The record with other units: the stock moves by the same number. */
function withUnits(record: VoucherRecord, units: number, unitsVersion: number): VoucherRecord {
  const { sale } = record;
  return { ...record, sale: { ...sale, units, stock: sale.stock + units - sale.units, unitsVersion } };
}
