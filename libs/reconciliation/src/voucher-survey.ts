import { Injectable } from '@nestjs/common';
import { SaleRegister, type Mark, type SaleReading } from '#sale-register';
import { StreamReader } from './stream-reader.js';
import type { SaleRecord } from '#vouchers';
import { findingKey, type Finding } from './findings.js';
import type { OrdersOnTheWay } from './orders-on-the-way.js';
import { ahead, pieces, sideBySide } from './pages.js';
import { PAGE_SIZE, RecordReader, type NamedOrder } from './record.reader.js';
import type { VoucherReport } from './reports.js';
import { judge, judgeSale, type BuyerFacts, type RecordFacts, type SaleFacts } from './rules.js';

/** Suspicions that one look follows up, or a little more; what lies beyond comes in the next look. */
export const MAX_SUSPECTS = 10_000;
/** Sales of which the first sight is taken side by side. */
const SALES_AT_ONCE = 4;

export interface SurveyOptions {
  readonly signal: AbortSignal;
  /** Between the two exact looks at a suspicion: what is in flight settles meanwhile. 0 where nothing is in flight. */
  readonly pauseMs: number;
}

/** One voucher with what looked wrong at first sight. */
interface Suspicion {
  readonly sale: SaleRecord;
  readonly buyers: Set<string>;
  readonly reading: SaleReading;
  readonly record: RecordFacts;
  numbersDiffer: boolean;
  /** Every strange buyer is among `buyers`. */
  complete: boolean;
}

/**
 * Looks at the vouchers of one partition and names their differences. The first sight walks marks, active orders and entries page by page and only
 * suspects; what it suspects is read again in the exact order (marks, stream, dead letters, moved part of the stream, database), twice, and
 * only what both looks name is a finding. So orders in flight are no difference. Changes nothing.
 */
@Injectable()
export class VoucherSurvey {
  constructor(
    private readonly register: SaleRegister,
    private readonly stream: StreamReader,
    private readonly record: RecordReader,
  ) {}

  /** Surveys the sales (at most PAGE_SIZE, all of `partition`). @throws RedisUnavailableError, DatabaseUnavailableError, and the signal's reason */
  async survey(partition: number, sales: readonly SaleRecord[], options: SurveyOptions): Promise<VoucherReport[]> {
    const onTheWay = await this.stream.ordersOnTheWay(partition, options.signal);
    const readings = await this.readSales(partition, sales);
    const suspicions: Suspicion[] = [];
    const reports: VoucherReport[] = [];
    let left = MAX_SUSPECTS;
    const seen = await sideBySide(sales, SALES_AT_ONCE, async (sale, index) => {
      options.signal.throwIfAborted();
      const suspicion = await this.suspect(sale, readings[index]!, onTheWay, left, options.signal);
      left -= suspicion?.buyers.size ?? 0;
      return suspicion;
    });
    for (const suspicion of seen) {
      if (suspicion === undefined) continue;
      reports.push(reportOf(suspicion, onTheWay));
      if (suspicion.buyers.size > 0 || suspicion.numbersDiffer) suspicions.push(suspicion);
    }
    if (suspicions.length === 0) return reports;
    const first = await this.look(partition, suspicions, options.signal);
    if (first.size === 0) return reports;
    if (options.pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, options.pauseMs));
    const second = await this.look(partition, suspicions, options.signal);
    return reports.map((report) => ({
      ...report,
      findings: inBoth(first.get(report.voucherId), second.get(report.voucherId)),
    }));
  }

  /** First sight of one voucher. Undefined where the record has lost it since it was listed. */
  private async suspect(
    sale: SaleRecord,
    reading: SaleReading,
    onTheWay: OrdersOnTheWay,
    limit: number,
    signal: AbortSignal,
  ): Promise<Suspicion | undefined> {
    const { voucherId, partition } = sale;
    const record = await this.record.facts(voucherId);
    if (record === undefined) return undefined;
    const facts = saleFacts(reading);
    const numbersDiffer = judgeSale({ voucherId, partition, sale: facts, record }).length > 0;
    const suspicion: Suspicion = { sale, buyers: new Set(), reading, record, numbersDiffer, complete: limit > 0 };
    if (facts.kind === 'UNUSABLE') return suspicion;
    for await (const users of this.strangeBuyers(sale, onTheWay, signal)) {
      for (const user of users) if (suspicion.buyers.size < limit) suspicion.buyers.add(user);
      suspicion.complete = suspicion.buyers.size < limit;
      if (!suspicion.complete) break;
    }
    return suspicion;
  }

  /** Buyers whose mark, entry and active order do not plainly agree; some may come twice. */
  private async *strangeBuyers(
    { partition, voucherId }: SaleRecord,
    onTheWay: OrdersOnTheWay,
    signal: AbortSignal,
  ): AsyncGenerator<string[]> {
    for await (const marks of walkMarks(this.register, { partition, voucherId }, signal)) {
      const standings = await this.record.standings(voucherId, marks);
      const strange = marks.filter(({ userId, orderId }, index) => {
        if (standings[index] === 'UNKNOWN') return !onTheWay.ordersOf(voucherId, userId).includes(orderId);
        return standings[index] !== 'ACTIVE';
      });
      yield strange.map(({ userId }) => userId);
    }
    for await (const orders of walkActiveOrders(this.record, voucherId, signal)) {
      const held = await this.register.readMarks(
        partition,
        voucherId,
        orders.map(({ userId }) => userId),
      );
      yield orders.filter(({ orderId }, index) => held[index] !== orderId).map(({ userId }) => userId);
    }
    const entered = [...onTheWay.buyersOf(voucherId)].map(([userId]) => userId);
    for (const userIds of pieces(entered, PAGE_SIZE)) {
      const held = await this.register.readMarks(partition, voucherId, userIds);
      yield userIds.filter((_, index) => held[index] === undefined);
    }
  }

  /** The exact look at everything suspected. Answers the findings by voucher; vouchers without any are missing. */
  private async look(
    partition: number,
    suspicions: readonly Suspicion[],
    signal: AbortSignal,
  ): Promise<Map<string, Finding[]>> {
    const marks = new Map<string, Map<string, string>>();
    for (const { sale, buyers } of suspicions) {
      marks.set(sale.voucherId, await this.marksOf(partition, sale.voucherId, [...buyers]));
    }
    const readings = await this.readSales(
      partition,
      suspicions.map(({ sale }) => sale),
    );
    const onTheWay = await this.stream.ordersOnTheWay(partition, signal);
    const findings = new Map<string, Finding[]>();
    for (const [index, { sale, buyers }] of suspicions.entries()) {
      signal.throwIfAborted();
      const { voucherId } = sale;
      const record = await this.record.facts(voucherId);
      if (record === undefined) continue;
      const facts = saleFacts(readings[index]!);
      // A sale that cannot be used is rebuilt as a whole: its buyers are not judged one by one.
      const judged = facts.kind === 'UNUSABLE' ? [] : [...buyers];
      const buyerFacts = await this.buyerFacts(voucherId, judged, marks.get(voucherId)!, onTheWay);
      const found = judge({ voucherId, partition, sale: facts, record }, buyerFacts);
      if (found.length > 0) findings.set(voucherId, found);
    }
    return findings;
  }

  private async buyerFacts(
    voucherId: string,
    userIds: readonly string[],
    marks: ReadonlyMap<string, string>,
    onTheWay: OrdersOnTheWay,
  ): Promise<BuyerFacts[]> {
    const facts: BuyerFacts[] = [];
    for (const users of pieces(userIds, PAGE_SIZE)) {
      const active = await this.record.activeOrdersOf(voucherId, users);
      const named: NamedOrder[] = [];
      for (const userId of users) {
        const mark = marks.get(userId);
        if (mark !== undefined) named.push({ userId, orderId: mark });
        for (const orderId of onTheWay.ordersOf(voucherId, userId)) named.push({ userId, orderId });
      }
      const standing = await this.standingsByName(voucherId, named);
      for (const userId of users) {
        const orderId = marks.get(userId);
        facts.push({
          userId,
          mark: orderId === undefined ? undefined : { orderId, standing: standing(userId, orderId) },
          onTheWay: onTheWay.ordersOf(voucherId, userId).filter((id) => standing(userId, id) === 'UNKNOWN'),
          activeOrderId: active.get(userId),
        });
      }
    }
    return facts;
  }

  private async standingsByName(voucherId: string, named: readonly NamedOrder[]) {
    const found = new Map<string, Awaited<ReturnType<RecordReader['standings']>>[number]>();
    for (const piece of pieces(named, PAGE_SIZE)) {
      const standings = await this.record.standings(voucherId, piece);
      piece.forEach(({ userId, orderId }, index) => found.set(`${userId}/${orderId}`, standings[index]!));
    }
    return (userId: string, orderId: string) => found.get(`${userId}/${orderId}`) ?? 'UNKNOWN';
  }

  private async marksOf(partition: number, voucherId: string, userIds: string[]): Promise<Map<string, string>> {
    const marks = new Map<string, string>();
    for (const users of pieces(userIds, PAGE_SIZE)) {
      const held = await this.register.readMarks(partition, voucherId, users);
      users.forEach((userId, index) => {
        const orderId = held[index];
        if (orderId !== undefined) marks.set(userId, orderId);
      });
    }
    return marks;
  }

  private readSales(partition: number, sales: readonly SaleRecord[]): Promise<SaleReading[]> {
    return this.register.readSales(
      partition,
      sales.map(({ voucherId }) => voucherId),
    );
  }
}

/** All marks of a voucher, in pieces of at most PAGE_SIZE. One that is there the whole time comes at least once; others may, or may not. */
export async function* walkMarks(
  register: SaleRegister,
  { partition, voucherId }: Pick<SaleRecord, 'partition' | 'voucherId'>,
  signal: AbortSignal,
): AsyncGenerator<readonly Mark[]> {
  for await (const marks of ahead(register.scanMarks(partition, voucherId), signal)) yield* pieces(marks, PAGE_SIZE);
}

/** All active orders of a voucher, by buyer, in pieces of at most PAGE_SIZE. */
export function walkActiveOrders(
  record: RecordReader,
  voucherId: string,
  signal: AbortSignal,
): AsyncGenerator<readonly NamedOrder[]> {
  return ahead(record.walkActiveOrders(voucherId), signal);
}

/** The register's side of a sale in the terms of the rules. */
export function saleFacts(reading: SaleReading): SaleFacts {
  switch (reading.kind) {
    case 'ABSENT':
      return { kind: 'UNUSABLE', cause: 'no sale' };
    case 'BROKEN':
      return { kind: 'UNUSABLE', cause: reading.cause };
    case 'FOUND': {
      const { unitsLeft, marks, units, unitsVersion, beginMs, endMs, status } = reading.sale;
      if (status !== 'open') return { kind: 'UNUSABLE', cause: 'a rebuild of it was begun and is not finished' };
      return { kind: 'PRESENT', stock: unitsLeft, marks, units, unitsVersion, beginMs, endMs };
    }
  }
}

function inBoth(first: readonly Finding[] = [], second: readonly Finding[] = []): Finding[] {
  const seen = new Set(first.map(findingKey));
  return second.filter((finding) => seen.has(findingKey(finding)));
}

function reportOf({ sale, reading, record, complete }: Suspicion, onTheWay: OrdersOnTheWay): VoucherReport {
  const { voucherId, partition } = sale;
  const found = reading.kind === 'FOUND' ? reading.sale : undefined;
  return {
    voucherId,
    partition,
    units: record.units,
    stock: found?.unitsLeft,
    marks: found?.marks,
    activeOrders: record.activeOrders,
    onTheWay: [...onTheWay.buyersOf(voucherId)].length,
    findings: [],
    complete,
  };
}
