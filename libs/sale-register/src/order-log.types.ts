import type { OrderEntry } from '#order-stream';

export interface AcknowledgeOutcome {
  /** Entries that were pending and are acknowledged now. */
  readonly acknowledged: number;
  /** Finished entries that were removed from the stream. */
  readonly trimmed: number;
}

/** What is written into a dead letter. */
export interface DeadLetterRecord {
  readonly entryId: string;
  readonly cause: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly deliveries: number;
  /** When the order's entry was appended, Unix milliseconds. */
  readonly firstSeenMs: number;
}

/** A dead letter as it stands in the log. `id` is its own id (`<ms>-<seq>`) within the partition. */
export interface DeadLetter extends DeadLetterRecord {
  readonly partition: number;
  readonly id: string;
  /** The order, where the fields are one. */
  readonly order: OrderEntry | undefined;
}

export type DeadLetterOutcome =
  | { readonly kind: 'WRITTEN'; readonly id: string }
  /** The entry was not pending in the group: another one settled it; nothing was written. */
  | { readonly kind: 'NOT_PENDING' };

export type RedriveOutcome =
  | { readonly kind: 'REDRIVEN'; readonly entryId: string }
  /** No such letter (any more). */
  | { readonly kind: 'GONE' }
  /** The mark does not hold this order: nothing was appended, the letter stands. */
  | { readonly kind: 'NOT_HELD' };

/** One partition's stream at one instant. Ages are by Redis' clock; undefined where there is nothing of that kind. */
export interface StreamStats {
  readonly partition: number;
  /** False while the stream or the group does not exist: then the numbers are zeros. */
  readonly exists: boolean;
  readonly length: number;
  /** Undelivered entries of the group; undefined where the server cannot tell. */
  readonly lag: number | undefined;
  readonly pending: number;
  readonly oldestPendingMs: number | undefined;
  readonly oldestUndeliveredMs: number | undefined;
  readonly consumers: readonly { readonly name: string; readonly pending: number; readonly idleMs: number }[];
  readonly deadLetters: number;
  /** Other groups on the stream; each of them holds entries back. */
  readonly foreignGroups: readonly {
    readonly name: string;
    readonly lag: number | undefined;
    readonly pending: number;
  }[];
}
