import { Inject, Injectable } from '@nestjs/common';
import type { Identity } from '#auth';
import { SETTINGS, type Settings } from '#config';
import { formatIsoTime, isTrouble, LATE, within } from '#http';
import { OrderReader, type OrderView } from '#orders';
import { RedisUnavailableError } from '#redis';
import { OrderSearch } from '#sale-register';
import { VoucherReader } from '#vouchers';
import { unixSecondOfOrderId } from './admission/order-id.js';
import { RebuildWishes } from './admission/rebuild-wishes.js';
import { MarkReader, type MarkReading } from './mark.reader.js';

/** What one look-up came to. UNAVAILABLE: neither store can decide now. */
export type OrderAnswer =
  | { readonly kind: 'FOUND'; readonly order: OrderView }
  | { readonly kind: 'NOT_FOUND' }
  | { readonly kind: 'UNAVAILABLE' };

/** A buyer's orders of one voucher, newest first. `complete` is false where the database is away and only the mark speaks. */
export type OwnOrdersAnswer =
  | { readonly kind: 'LIST'; readonly items: readonly OrderView[]; readonly complete: boolean }
  | { readonly kind: 'VOUCHER_NOT_FOUND' }
  | { readonly kind: 'UNAVAILABLE' };

/** The record's word on something; AWAY where the database does not answer in time. */
type Recorded<T> = { readonly kind: 'ANSWER'; readonly value: T } | { readonly kind: 'AWAY' };

const NOT_FOUND: OrderAnswer = { kind: 'NOT_FOUND' };
const UNAVAILABLE = { kind: 'UNAVAILABLE' } as const;
/** The id is made before the entry is appended, and by another clock. */
const SEARCH_BEFORE_MS = 5_000;
const SEARCH_AFTER_MS = 15_000;
const SEARCH_MAX_ENTRIES = 200_000;
const ACTIVE: readonly OrderView['status'][] = ['QUEUED', 'UNPAID', 'PAID', 'USED', 'REFUNDING'];

/**
 * Where an order stands: Redis is asked first (the mark is the accepted order), then the record. This order matters: a mark that is missing may have
 * been given back, and then the record has the rejection already.
 */
@Injectable()
export class OrderStatusService {
  private readonly timeLimitMs: number;

  constructor(
    private readonly marks: MarkReader,
    private readonly orders: OrderReader,
    private readonly vouchers: VoucherReader,
    private readonly search: OrderSearch,
    private readonly rebuilds: RebuildWishes,
    @Inject(SETTINGS) settings: Settings,
  ) {
    this.timeLimitMs = settings.http.requestTimeoutMs * 0.9;
  }

  /** One order, for its buyer or an administrator, within REQUEST_TIMEOUT_MS. Never rejects for a store that is away. */
  async find(voucherId: string, orderId: string, caller: Identity): Promise<OrderAnswer> {
    const deadlineMs = performance.now() + this.timeLimitMs;
    const mark = await this.mark(voucherId, caller.userId, deadlineMs);
    const recorded = await this.recorded(this.orders.findOrder(orderId), deadlineMs);
    if (recorded.kind === 'ANSWER' && recorded.value !== undefined) {
      const order = recorded.value;
      const isTheirs = order.userId === caller.userId || caller.role === 'admin';
      return order.voucherId === voucherId && isTheirs ? { kind: 'FOUND', order } : NOT_FOUND;
    }
    if (mark.kind === 'HELD' && mark.orderId === orderId) {
      return { kind: 'FOUND', order: queuedOrder(orderId, voucherId, caller.userId) };
    }
    if (caller.role === 'admin')
      return this.searchStream(voucherId, orderId, mark, recorded.kind === 'AWAY', deadlineMs);
    if (recorded.kind === 'AWAY') return UNAVAILABLE;
    if (mark.kind !== 'UNDECIDED') return NOT_FOUND;
    return (await this.existsByRecord(voucherId, mark, deadlineMs)) === 'UNKNOWN' ? NOT_FOUND : UNAVAILABLE;
  }

  /** The caller's orders of one voucher. Never rejects for a store that is away. */
  async listOwn(voucherId: string, userId: string): Promise<OwnOrdersAnswer> {
    const deadlineMs = performance.now() + this.timeLimitMs;
    const mark = await this.mark(voucherId, userId, deadlineMs);
    const recorded = await this.recorded(this.orders.listOrdersOfVoucher(voucherId, userId), deadlineMs);
    const items = recorded.kind === 'ANSWER' ? recorded.value : [];
    const complete = recorded.kind === 'ANSWER';
    switch (mark.kind) {
      case 'HELD': {
        const isRecorded = items.some(({ orderId }) => orderId === mark.orderId);
        const queued = isRecorded ? [] : [queuedOrder(mark.orderId, voucherId, userId)];
        return { kind: 'LIST', items: [...queued, ...items], complete };
      }
      case 'NONE':
        return { kind: 'LIST', items, complete };
      case 'UNDECIDED':
        // A buyer has one active order at most: where the record has it, no other is on its way.
        if (items.some(({ status }) => ACTIVE.includes(status))) return { kind: 'LIST', items, complete };
        if (complete && (await this.existsByRecord(voucherId, mark, deadlineMs)) === 'UNKNOWN')
          return { kind: 'VOUCHER_NOT_FOUND' };
        return UNAVAILABLE;
    }
  }

  private async mark(voucherId: string, userId: string, deadlineMs: number): Promise<MarkReading> {
    const mark = await within(this.marks.read(voucherId, userId), deadlineMs - performance.now());
    return mark === LATE ? { kind: 'UNDECIDED', partition: undefined } : mark;
  }

  private async recorded<T>(answer: Promise<T>, deadlineMs: number): Promise<Recorded<T>> {
    try {
      const value = await within(answer, deadlineMs - performance.now());
      return value === LATE ? { kind: 'AWAY' } : { kind: 'ANSWER', value };
    } catch (error) {
      if (!isTrouble(error)) throw error;
      return { kind: 'AWAY' };
    }
  }

  /** The register cannot say anything of the voucher: does it exist at all? One that does is put back by a rebuild. */
  private async existsByRecord(
    voucherId: string,
    mark: Extract<MarkReading, { readonly kind: 'UNDECIDED' }>,
    deadlineMs: number,
  ): Promise<'KNOWN' | 'UNKNOWN' | 'UNDECIDED'> {
    const knowledge = await this.vouchers.knowsVoucher(voucherId, deadlineMs - performance.now());
    if (knowledge.kind === 'KNOWN') {
      if (mark.partition === undefined) this.rebuilds.wish(knowledge.partition, voucherId, 'NOT_PUBLISHED');
      else this.rebuilds.closed(mark.partition, voucherId);
    }
    return knowledge.kind;
  }

  private async searchStream(
    voucherId: string,
    orderId: string,
    mark: MarkReading,
    recordIsAway: boolean,
    deadlineMs: number,
  ): Promise<OrderAnswer> {
    const knowledge =
      mark.partition === undefined
        ? await this.vouchers.knowsVoucher(voucherId, deadlineMs - performance.now())
        : ({ kind: 'KNOWN', partition: mark.partition } as const);
    if (knowledge.kind === 'UNKNOWN') return NOT_FOUND;
    if (knowledge.kind === 'UNDECIDED') return UNAVAILABLE;
    const madeMs = unixSecondOfOrderId(orderId) * 1_000;
    const span = {
      fromMs: madeMs - SEARCH_BEFORE_MS,
      untilMs: madeMs + SEARCH_AFTER_MS,
      maxEntries: SEARCH_MAX_ENTRIES,
      timeLeftMs: deadlineMs - performance.now(),
    };
    try {
      const found = await this.search.find(knowledge.partition, orderId, span);
      if (found.kind === 'FOUND' && found.order.voucherId === voucherId) {
        return { kind: 'FOUND', order: queuedOrder(orderId, voucherId, found.order.userId) };
      }
      if (found.kind === 'UNDECIDED' || recordIsAway || mark.kind === 'UNDECIDED') return UNAVAILABLE;
    } catch (error) {
      if (!(error instanceof RedisUnavailableError)) throw error;
      return UNAVAILABLE;
    }
    // Stored between the two looks: its entry is gone and its row is there.
    const again = await this.recorded(this.orders.findOrder(orderId), deadlineMs);
    if (again.kind === 'AWAY') return UNAVAILABLE;
    return again.value?.voucherId === voucherId ? { kind: 'FOUND', order: again.value } : NOT_FOUND;
  }
}

/** An accepted order that is not stored yet. Its times are those of its id. */
export function queuedOrder(orderId: string, voucherId: string, userId: string): OrderView {
  const createTime = formatIsoTime(unixSecondOfOrderId(orderId) * 1_000);
  return { orderId, voucherId, userId, status: 'QUEUED', createTime, updateTime: createTime };
}
