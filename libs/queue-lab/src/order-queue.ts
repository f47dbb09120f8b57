/** One order as the laboratory passes it round. Ids are decimal strings. */
export interface LabOrder {
  readonly id: string;
  readonly userId: string;
  readonly voucherId: string;
}

/** Does the work for one order. The order counts as handled when it resolves. */
export type OrderHandler = (order: LabOrder) => Promise<void>;

/**
 * A queue of orders between one who offers and one who consumes. Every implementation does it by its own means, as well as those means allow:
 * what is lost is lost by the means, not by carelessness.
 */
export interface OrderQueue {
  /** Resolves to true when the queue has taken the order over, to false when it is full. Rejects when the outcome is unknown. */
  offer(order: LabOrder): Promise<boolean>;
  /** Starts to hand orders to the handler, one after another; resolves when consuming has begun. Call it once. */
  consume(handler: OrderHandler): Promise<void>;
  /** Ends consuming after the order in hand, and closes connections. What is not handled stays where the means keep it. */
  close(): Promise<void>;
}

/** Writes an order into one string. */
export function encode(order: LabOrder): string {
  return `${order.id},${order.userId},${order.voucherId}`;
}

/** Reads what `encode` wrote. Throws on anything else. */
export function decode(text: string): LabOrder {
  const match = /^(\d+),(\d+),(\d+)$/.exec(text);
  if (match === null) throw new Error(`not an order: ${text.slice(0, 60)}`);
  return { id: match[1] ?? '', userId: match[2] ?? '', voucherId: match[3] ?? '' };
}
