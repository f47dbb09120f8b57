/** One accepted order as it travels through the stream. All ids are canonical decimal strings, 1..9223372036854775807. */
export interface OrderEntry {
  readonly orderId: string;
  readonly userId: string;
  readonly voucherId: string;
}

/** One entry as the stream hands it out: its own id (`<ms>-<seq>`), the raw fields (null where the entry was deleted). */
export interface RawEntry {
  readonly entryId: string;
  readonly fields: Readonly<Record<string, string>> | null;
}

/** What decoding an entry came to. A malformed one says why, in words fit for a dead letter's cause. */
export type DecodedEntry =
  | { readonly kind: 'ORDER'; readonly entryId: string; readonly order: OrderEntry }
  | {
      readonly kind: 'MALFORMED';
      readonly entryId: string;
      readonly cause: string;
      readonly fields: Readonly<Record<string, string>>;
    }
  | { readonly kind: 'VANISHED'; readonly entryId: string };
