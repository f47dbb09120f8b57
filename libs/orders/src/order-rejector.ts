import { Injectable } from '@nestjs/common';
import { classifyDatabaseError, Database, type Session } from '#database';
import { arrayLiteral, orderArrays } from './order-arrays.js';
import { REJECT_ORDERS, REJECT_WITHOUT_ROW } from './order-statements.js';
import { ACTOR, lookUp } from './order-transaction.js';
import type { NewOrder, OrderResult, OrderToReject, RejectionReason } from './order.types.js';
import { exclusivePartitionLock, sharedPartitionLock } from './partition-fence.js';
import { rejected, type Standing } from './standing.js';

const LONGEST_CAUSE = 1_024;

interface Verdict {
  readonly order: NewOrder;
  readonly reason: RejectionReason;
  readonly cause: string;
}

/** Records rejections durably. */
@Injectable()
export class OrderRejector {
  constructor(private readonly database: Database) {}

  /**
   * As OrderRepository.rejectOrder says. The order's own row, with status 7, decides every race with a transaction that stores it: both want the
   * same primary key. Where the table refuses even that row, the rejection is written while nobody stores into the partition.
   */
  async reject(partition: number, order: OrderToReject, reason: RejectionReason, cause: string): Promise<OrderResult> {
    const verdict: Verdict = {
      order: { ...order, acceptedAtMs: order.acceptedAtMs ?? Date.now() },
      reason,
      cause: printable(cause).slice(0, LONGEST_CAUSE),
    };
    return (await this.asRow(partition, verdict)) ?? this.withoutRow(partition, verdict);
  }

  /** Undefined where the row was refused, or dropped in silence. */
  private async asRow(partition: number, verdict: Verdict): Promise<OrderResult | undefined> {
    try {
      return await this.database.transaction(
        async (_manager, session) => {
          const standing = await standingNow(session, verdict.order);
          if (standing.kind === 'SETTLED') return standing.result;
          const { reason, activeOrderId } = reasonAt(standing, verdict.reason);
          const { ids, users, vouchers, acceptedMs } = orderArrays([verdict.order]);
          const written = await session.query(REJECT_ORDERS, [
            ids,
            users,
            vouchers,
            acceptedMs,
            arrayLiteral([activeOrderId]),
            reason,
            verdict.cause,
            ACTOR,
          ]);
          return written.length === 1 ? rejected(reason, activeOrderId) : undefined;
        },
        { opening: sharedPartitionLock(partition) },
      );
    } catch (error) {
      if (classifyDatabaseError(error) === 'FINAL') return undefined;
      throw error;
    }
  }

  private withoutRow(partition: number, verdict: Verdict): Promise<OrderResult> {
    return this.database.transaction(
      async (_manager, session) => {
        const standing = await standingNow(session, verdict.order);
        if (standing.kind === 'SETTLED') return standing.result;
        const { reason, activeOrderId } = reasonAt(standing, verdict.reason);
        const { orderId, userId, voucherId, acceptedAtMs } = verdict.order;
        await session.query(REJECT_WITHOUT_ROW, [
          orderId,
          userId,
          voucherId,
          acceptedAtMs,
          activeOrderId,
          reason,
          verdict.cause,
          ACTOR,
        ]);
        return rejected(reason, activeOrderId);
      },
      { opening: exclusivePartitionLock(partition) },
    );
  }
}

async function standingNow(session: Session, order: NewOrder): Promise<Standing> {
  const [standing] = await lookUp(session, [order]);
  if (standing === undefined) throw new Error('the look-up answered nothing');
  return standing;
}

/** A buyer who has another active order keeps the mark, under that order's id, whatever this rejection is called. */
function reasonAt(
  standing: Standing,
  wanted: RejectionReason,
): { reason: RejectionReason; activeOrderId: string | null } {
  if (standing.kind !== 'OTHER_ORDER') return { reason: wanted, activeOrderId: null };
  return {
    reason: wanted === 'REFUSED_BY_DATABASE' ? 'OTHER_ACTIVE_ORDER' : wanted,
    activeOrderId: standing.activeOrderId,
  };
}

/** PostgreSQL's text holds no NUL. */
function printable(text: string): string {
  return text.replaceAll('\0', '');
}
