import { Injectable } from '@nestjs/common';
import { MAX_REBUILD_MARKS, RebuildRegister, SaleDirectory, SaleRegister, type RebuiltMark } from '#sale-register';
import { StockLedger, type NewLedgerEntry } from '#orders';
import type { SaleRecord } from '#vouchers';
import type { OrdersOnTheWay } from './orders-on-the-way.js';
import { pieces } from './pages.js';
import { addTally, emptyTally, type RebuildTally } from './rebuild-report.js';
import { PAGE_SIZE, RecordReader, type NamedOrder } from './record.reader.js';
import { walkActiveOrders, walkMarks } from './voucher-survey.js';

/** A rebuild in hand: its partition, the epoch value that every script must find, its token, and what it read of the stream under them. */
export interface RebuildTask {
  readonly partition: number;
  readonly epoch: string;
  readonly token: string;
  readonly onTheWay: OrdersOnTheWay;
  readonly signal: AbortSignal;
  readonly actor: string;
  readonly tally: RebuildTally;
}

/** Another reconciler took over, or the server's history changed: this rebuild is void and changes nothing any more. */
export class RebuildLostError extends Error {
  readonly code = 'REBUILD_LOST';

  constructor() {
    super('the rebuild was overtaken');
    this.name = 'RebuildLostError';
  }
}

/**
 * Rebuilds one sale. The marks that are there stay as far as they are rights; active orders and entries on their way that lack one get theirs; the
 * stock is counted last, by the script. Works in pieces of at most 1,000, so its memory does not grow with the sale.
 */
@Injectable()
export class VoucherRebuild {
  constructor(
    private readonly register: SaleRegister,
    private readonly rebuilds: RebuildRegister,
    private readonly directory: SaleDirectory,
    private readonly record: RecordReader,
    private readonly ledger: StockLedger,
  ) {}

  /** Closes the sale under the token. Must precede the raise of the fence and the reading of the stream. @throws RebuildLostError */
  async begin(partition: number, voucherId: string, epoch: string, token: string): Promise<void> {
    const { kind } = await this.rebuilds.begin(partition, voucherId, epoch, token);
    if (kind === 'LOST') throw new RebuildLostError();
  }

  /** Does the whole work on a sale that was begun, and opens it. @throws RebuildLostError, and what the stores throw */
  async complete(whole: RebuildTask, sale: SaleRecord): Promise<void> {
    // Others are rebuilt beside it: what is told of this one is its own.
    const tally = emptyTally();
    const task = { ...whole, tally };
    try {
      await this.rebuild(task, sale);
    } finally {
      addTally(whole.tally, tally);
    }
  }

  private async rebuild(task: RebuildTask, sale: SaleRecord): Promise<void> {
    const { tally } = task;
    await this.directory.record(sale.voucherId, sale.partition);
    await this.judgeMarks(task, sale);
    await this.markActiveOrders(task, sale);
    await this.markEntries(task, sale);
    const finished = await this.rebuilds.finish(task.partition, sale, task.epoch, task.token);
    if (finished.kind === 'LOST') throw new RebuildLostError();
    tally.vouchers += 1;
    tally.marks += finished.marks;
    await this.note(task, {
      kind: 'REBUILD',
      voucherId: sale.voucherId,
      after: finished.unitsLeft,
      reason:
        `rebuilt: ${finished.units} units, ${finished.marks} marks (${tally.marksSet} set, ` +
        `${tally.marksRemoved} removed), ${tally.entriesAppended} entries appended again`,
      actor: task.actor,
    });
  }

  /** Takes away the marks that are no rights, and sends those again that only the mark knows of. */
  private async judgeMarks(task: RebuildTask, sale: SaleRecord): Promise<void> {
    for await (const marks of walkMarks(this.register, sale, task.signal)) {
      const standings = await this.record.standings(sale.voucherId, marks);
      const strange = marks
        .map((mark, index) => ({ ...mark, standing: standings[index]! }))
        .filter(({ standing }) => standing !== 'ACTIVE')
        .filter(
          ({ standing, userId, orderId }) =>
            standing !== 'UNKNOWN' || !task.onTheWay.ordersOf(sale.voucherId, userId).includes(orderId),
        );
      if (strange.length === 0) continue;
      const users = strange.map(({ userId }) => userId);
      const active = await this.record.activeOrdersOf(sale.voucherId, users);
      for (const { userId, orderId, standing } of strange) {
        // A buyer with an active order keeps his mark: the walk over the active orders writes the right id into it.
        if (active.has(userId)) continue;
        if (standing === 'UNKNOWN') await this.sendAgain(task, sale, { userId, orderId });
        else await this.remove(task, sale, { userId, orderId });
      }
    }
  }

  private async markActiveOrders(task: RebuildTask, sale: SaleRecord): Promise<void> {
    for await (const orders of walkActiveOrders(this.record, sale.voucherId, task.signal)) {
      await this.writeMarks(task, sale, orders, () => true);
    }
  }

  /** Marks the buyers of orders on their way that are neither recorded nor second orders. */
  private async markEntries(task: RebuildTask, sale: SaleRecord): Promise<void> {
    const { voucherId } = sale;
    const entered = [...task.onTheWay.buyersOf(voucherId)].flatMap(([userId, orderIds]) =>
      orderIds.map((orderId) => ({ userId, orderId })),
    );
    for (const named of pieces(entered, PAGE_SIZE)) {
      task.signal.throwIfAborted();
      const standings = await this.record.standings(voucherId, named);
      const unknown = named.filter((_, index) => standings[index] === 'UNKNOWN');
      const active = await this.record.activeOrdersOf(
        voucherId,
        unknown.map(({ userId }) => userId),
      );
      const first = new Map<string, NamedOrder>();
      for (const order of unknown) {
        if (!active.has(order.userId) && !first.has(order.userId)) first.set(order.userId, order);
      }
      await this.writeMarks(task, sale, [...first.values()], (held) => held === undefined);
    }
  }

  /** Sets the marks of those orders whose mark is another one now and which `wanted` lets through. */
  private async writeMarks(
    task: RebuildTask,
    { voucherId }: SaleRecord,
    orders: readonly NamedOrder[],
    wanted: (heldOrderId: string | undefined) => boolean,
  ): Promise<void> {
    for (const piece of pieces(orders, MAX_REBUILD_MARKS)) {
      const held = await this.register.readMarks(
        task.partition,
        voucherId,
        piece.map(({ userId }) => userId),
      );
      const marks: RebuiltMark[] = piece
        .map(({ userId, orderId }, index) => ({ userId, orderId, expectedOrderId: held[index] }))
        .filter(({ orderId, expectedOrderId }) => expectedOrderId !== orderId && wanted(expectedOrderId));
      const written = await this.rebuilds.writeMarks(task.partition, voucherId, task.epoch, task.token, marks);
      if (written.kind === 'LOST') throw new RebuildLostError();
      // What was kept changed since it was read: the look at the rules that follows judges it again.
      task.tally.marksSet += written.written;
    }
  }

  private async sendAgain(task: RebuildTask, { voucherId }: SaleRecord, order: NamedOrder): Promise<void> {
    const { kind } = await this.rebuilds.reappend(task.partition, { ...order, voucherId }, task.epoch);
    if (kind === 'LOST') throw new RebuildLostError();
    if (kind === 'NOT_HELD') return;
    task.tally.entriesAppended += 1;
    await this.note(task, {
      kind: 'REPAIR',
      voucherId,
      orderId: order.orderId,
      reason: `ENTRY_LOST: the entry of buyer ${order.userId} was appended again by a rebuild`,
      actor: task.actor,
    });
  }

  private async remove(task: RebuildTask, { voucherId }: SaleRecord, { userId, orderId }: NamedOrder): Promise<void> {
    if (!(await this.rebuilds.dropStrayMark(task.partition, voucherId, userId, orderId))) return;
    task.tally.marksRemoved += 1;
    await this.note(task, {
      kind: 'REPAIR',
      voucherId,
      reason: `RELEASE_LOST: the mark of buyer ${userId} named order ${orderId}, which holds no unit; a rebuild took it away`,
      actor: task.actor,
    });
  }

  private note(task: RebuildTask, entry: NewLedgerEntry): Promise<void> {
    task.signal.throwIfAborted();
    return this.ledger.note(entry);
  }
}
