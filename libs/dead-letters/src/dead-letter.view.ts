import { isEntryId } from '#order-stream';
import type { DeadLetter } from '#sale-register';

/** A dead letter as an administrator sees it. */
export interface DeadLetterView {
  /** `<partition>-<ms>-<seq>`. */
  readonly id: string;
  readonly partition: number;
  readonly cause: string;
  /** The entry's fields as they stood in the stream. */
  readonly fields: Readonly<Record<string, string>>;
  /** How often the entry was handed to a consumer. */
  readonly deliveries: number;
  /** When the entry was appended: ISO 8601, UTC. */
  readonly firstSeenTime: string;
}

/** One page of dead letters: by partition, oldest first. */
export interface DeadLetterPage {
  readonly items: readonly DeadLetterView[];
  /** Absent on the last page. */
  readonly nextCursor?: string;
}

/** Which letter of which partition. */
export interface DeadLetterKey {
  readonly partition: number;
  readonly entryId: string;
}

const LETTER_ID = /^(0|[1-9][0-9]{0,9})-([0-9]+-[0-9]+)$/;
const LARGEST_PARTITION = 2_147_483_647;
const LATEST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** Reads `<partition>-<ms>-<seq>`, canonical decimals; undefined for any other text. */
export function parseLetterId(text: unknown): DeadLetterKey | undefined {
  if (typeof text !== 'string' || text.length > 64) return undefined;
  const [, partition, entryId] = LETTER_ID.exec(text) ?? [];
  if (partition === undefined || !isEntryId(entryId) || Number(partition) > LARGEST_PARTITION) return undefined;
  return { partition: Number(partition), entryId };
}

export function formatLetterId({ partition, entryId }: DeadLetterKey): string {
  return `${partition}-${entryId}`;
}

export function viewOf(letter: DeadLetter): DeadLetterView {
  return {
    id: formatLetterId({ partition: letter.partition, entryId: letter.id }),
    partition: letter.partition,
    cause: letter.cause,
    fields: letter.fields,
    deliveries: letter.deliveries,
    // An entry put in by hand may carry any number as its time.
    firstSeenTime: new Date(Math.min(letter.firstSeenMs, LATEST_MS)).toISOString(),
  };
}
