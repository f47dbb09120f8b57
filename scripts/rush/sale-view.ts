/** One order of the voucher as the record has it. */
export interface RecordedOrder {
  readonly orderId: string;
  readonly userId: string;
  readonly rejected: boolean;
}

/** What can be known of a sale after the rush. Undefined: this view cannot tell. */
export interface SaleFacts {
  /** Every order on record; undefined where only single ones can be asked for. */
  readonly orders: readonly RecordedOrder[] | undefined;
  readonly unitsLeft: number | undefined;
  readonly marks: number | undefined;
  /** Undelivered and pending entries, and dead letters, of the voucher's partition. */
  readonly pending: number | undefined;
  readonly deadLetters: number | undefined;
  readonly differences: readonly string[] | undefined;
}

/** A way to look at what became of a sale: through the stores, or through the API alone. */
export interface SaleView {
  /** For people: through what it looks. */
  readonly name: string;
  /** Active orders on record by now; undefined where this cannot be told while the rush runs. */
  storedSoFar(): Promise<number | undefined>;
  /** Undelivered and pending entries by now. */
  onTheWay(): Promise<number | undefined>;
  facts(): Promise<SaleFacts>;
  /** What became of one accepted order, asked as its buyer. */
  standing(orderId: string, buyer: number): Promise<'STORED' | 'REJECTED' | 'QUEUED' | 'UNKNOWN'>;
  close(): Promise<void>;
}
