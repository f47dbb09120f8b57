import type { OrderEntry } from '#order-stream';

/** One order that this consumer holds: it is in its pending list, and nothing durable is known about it yet. */
export interface HeldOrder {
  readonly entryId: string;
  readonly order: OrderEntry;
  /** The entry's fields as they stand in the stream. */
  readonly fields: Readonly<Record<string, string>>;
  /** How often the entry was handed out, as far as it is known. */
  readonly deliveries: number;
}

/** The orders of one read that are still to be decided. `epochNumber` held before they were read. */
export interface Batch {
  epochNumber: number;
  orders: HeldOrder[];
}
