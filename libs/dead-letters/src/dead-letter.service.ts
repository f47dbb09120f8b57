import { Inject, Injectable, Logger } from '@nestjs/common';
import { SETTINGS, type Settings } from '#config';
import { isCanonicalId, type OrderEntry } from '#order-stream';
import { OrderReader, OrderRepository, type OrderResult, type OrderView, StockLedger } from '#orders';
import { type DeadLetter, OrderLog, SaleRegister } from '#sale-register';
import { type DeadLetterKey, type DeadLetterPage, formatLetterId, viewOf } from './dead-letter.view.js';
import { settledLetters } from './metrics.js';

/** What the database knows of a letter's order: then the letter was only to be removed. */
type AlreadySettled = 'ALREADY_STORED' | 'ALREADY_CANCELLED' | 'ALREADY_REJECTED';

/**
 * What a redrive came to. REDRIVEN: the order is on its way again. NOT_FOUND: no such letter (any more). NOT_REDRIVABLE: the letter stands; it holds
 * no order, another order has its id, or the buyer's mark does not hold it.
 */
export type RedriveResult = 'REDRIVEN' | 'NOT_FOUND' | 'NOT_REDRIVABLE' | AlreadySettled;

/** What a discard came to. DISCARDED: the order is rejected and its unit given back. BUSY: somebody holds a lock; nothing was changed. */
export type DiscardOutcome = 'DISCARDED' | 'NOT_FOUND' | 'BUSY' | Exclude<AlreadySettled, 'ALREADY_REJECTED'>;

/**
 * Entries that were no orders, for a person to decide about. Both decisions read the order first: one that is stored is only taken off the list. Each
 * step is idempotent and in such an order that a repeated, raced or interrupted decision has one effect: rejections are recorded before a unit
 * is given back, and the letter goes last, or together with the entry that is appended anew. All methods throw while Redis or the database is away.
 */
@Injectable()
export class DeadLetterService {
  private readonly logger = new Logger(DeadLetterService.name);
  private registered: readonly number[] = [];

  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly log: OrderLog,
    private readonly register: SaleRegister,
    private readonly orders: OrderRepository,
    private readonly reader: OrderReader,
    private readonly ledger: StockLedger,
  ) {}

  /** The letters of all partitions, by partition, oldest first, behind `after`; at most `limit`. */
  async list(limit: number, after?: DeadLetterKey): Promise<DeadLetterPage> {
    const found: DeadLetter[] = [];
    for (const partition of await this.partitions()) {
      if (found.length > limit) break;
      if (after !== undefined && partition < after.partition) continue;
      const behind = partition === after?.partition ? after.entryId : undefined;
      found.push(...(await this.log.listDeadLetters(partition, limit + 1 - found.length, behind)));
    }
    const items = found.slice(0, limit).map(viewOf);
    const last = items.at(-1);
    return found.length > limit && last !== undefined ? { items, nextCursor: last.id } : { items };
  }

  /** Tries the letter's order once more. `actor`: who asks, for the record. */
  async redrive(key: DeadLetterKey, actor: string): Promise<RedriveResult> {
    const letter = await this.log.findDeadLetter(key.partition, key.entryId);
    if (letter === undefined) return 'NOT_FOUND';
    const outcome = letter.order === undefined ? 'NOT_REDRIVABLE' : await this.redriveOrder(letter, letter.order);
    if (outcome !== 'NOT_FOUND' && outcome !== 'NOT_REDRIVABLE') this.settled(letter, outcome, actor);
    return outcome;
  }

  /** Gives the letter's order up: records it as rejected, gives its unit back, removes the letter. `actor`: who asks, for the record. */
  async discard(key: DeadLetterKey, actor: string): Promise<DiscardOutcome> {
    const letter = await this.log.findDeadLetter(key.partition, key.entryId);
    if (letter === undefined) return 'NOT_FOUND';
    const outcome =
      letter.order === undefined
        ? await this.discardNoOrder(letter, actor)
        : await this.discardOrder(letter, letter.order, actor);
    if (outcome === 'BUSY') return outcome;
    // Where another call removed it meanwhile, what was recorded holds all the same.
    if (await this.log.removeDeadLetter(letter.partition, letter.id)) this.settled(letter, outcome, actor);
    return outcome;
  }

  private async redriveOrder(letter: DeadLetter, order: OrderEntry): Promise<RedriveResult> {
    const known = await this.reader.findOrder(order.orderId);
    if (known === undefined) {
      const outcome = await this.log.redrive(letter.partition, letter.id, order);
      switch (outcome.kind) {
        case 'REDRIVEN':
          return 'REDRIVEN';
        case 'GONE':
          return 'NOT_FOUND';
        case 'NOT_HELD':
          return 'NOT_REDRIVABLE';
      }
    }
    if (!isSameOrder(known, order)) return 'NOT_REDRIVABLE';
    if (known.status === 'REJECTED') await this.releaseAgain(letter, order);
    const removed = await this.log.removeDeadLetter(letter.partition, letter.id);
    return removed ? settledAs(known) : 'NOT_FOUND';
  }

  /** A rejection stands: whatever its release left undone is done now. */
  private async releaseAgain(letter: DeadLetter, order: OrderEntry): Promise<void> {
    const result = await this.orders.rejectOrder(letter.partition, order, 'DISCARDED', letter.cause);
    if (result.kind === 'REJECTED') await this.register.release(letter.partition, order, result.activeOrderId);
  }

  private async discardOrder(letter: DeadLetter, order: OrderEntry, actor: string): Promise<DiscardOutcome> {
    const cause = `discarded by ${actor}: ${letter.cause}`;
    const result = await this.orders.rejectOrder(letter.partition, order, 'DISCARDED', cause);
    switch (result.kind) {
      case 'REJECTED':
        await this.releaseRecorded(letter, order, result, actor);
        return 'DISCARDED';
      case 'FOREIGN_ID':
        // The id's row is another order's, so the ledger is the durable record for which this one may lose its right.
        await this.note(letter, order.voucherId, `REJECTION of a foreign id: ${cause}`, actor, order.orderId);
        await this.register.release(letter.partition, order);
        return 'DISCARDED';
      case 'STORED':
      case 'ALREADY_STORED':
        return 'ALREADY_STORED';
      case 'ALREADY_CANCELLED':
        await this.register.release(letter.partition, order);
        return 'ALREADY_CANCELLED';
      case 'DEFERRED':
        return 'BUSY';
      case 'UNKNOWN_VOUCHER':
        return this.discardNoOrder(letter, actor);
    }
  }

  private async releaseRecorded(
    letter: DeadLetter,
    order: OrderEntry,
    rejected: Extract<OrderResult, { kind: 'REJECTED' }>,
    actor: string,
  ): Promise<void> {
    const outcome = await this.register.release(letter.partition, order, rejected.activeOrderId);
    if (outcome === 'NOT_HELD') return;
    await this.note(
      letter,
      order.voucherId,
      `${outcome}: dead letter ${nameOf(letter)} discarded`,
      actor,
      order.orderId,
    );
  }

  /** Nothing stands behind it: no unit to give back, no order to reject. */
  private async discardNoOrder(letter: DeadLetter, actor: string): Promise<'DISCARDED'> {
    const { voucherId } = letter.fields;
    if (isCanonicalId(voucherId)) {
      await this.note(letter, voucherId, `dead letter ${nameOf(letter)} discarded, no order: ${letter.cause}`, actor);
    }
    return 'DISCARDED';
  }

  private async note(
    letter: DeadLetter,
    voucherId: string,
    reason: string,
    actor: string,
    orderId?: string,
  ): Promise<void> {
    await this.ledger.note({
      kind: letter.order === undefined ? 'REJECTION' : 'RELEASE',
      voucherId,
      ...(orderId === undefined ? {} : { orderId }),
      reason,
      actor,
    });
  }

  private settled(letter: DeadLetter, outcome: string, actor: string): void {
    settledLetters.inc({ outcome });
    this.logger.log(`dead letter ${nameOf(letter)}: ${outcome} by ${actor}`);
  }

  /** Those of the settings, and every further one that the database knows; while it is away, those that it named last. */
  private async partitions(): Promise<number[]> {
    const configured = Array.from({ length: this.settings.stream.partitions }, (_, partition) => partition);
    try {
      this.registered = await this.orders.partitions();
    } catch {
      this.logger.warn('the database is away: dead letters of the known partitions only');
    }
    return [...new Set([...configured, ...this.registered])].sort((a, b) => a - b);
  }
}

function nameOf(letter: DeadLetter): string {
  return formatLetterId({ partition: letter.partition, entryId: letter.id });
}

function isSameOrder(known: OrderView, order: OrderEntry): boolean {
  return known.userId === order.userId && known.voucherId === order.voucherId;
}

function settledAs(known: OrderView): AlreadySettled {
  if (known.status === 'REJECTED') return 'ALREADY_REJECTED';
  return known.status === 'CANCELLED' || known.status === 'REFUNDED' ? 'ALREADY_CANCELLED' : 'ALREADY_STORED';
}
