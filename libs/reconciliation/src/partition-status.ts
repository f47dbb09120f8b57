/** Where a partition stands, as this process last saw it. */
export type PartitionCondition =
  | 'OPEN'
  | 'CLOSED'
  | 'REBUILDING'
  /** Closed, and the rebuild needs the database, which is away. */
  | 'WAITING_FOR_DATABASE'
  /** Redis did not say. */
  | 'UNREACHABLE'
  /** The last rebuild failed; it is tried again after a pause. */
  | 'FAILING'
  /** The server has no data history, or the user may not ask for it: an operator's matter. */
  | 'NOT_SUPPORTED';

export interface PartitionStatus {
  readonly partition: number;
  readonly condition: PartitionCondition;
  /** Words for an operator, where there is something to say. */
  readonly reason: string | undefined;
  /** Unix milliseconds of the last change of the condition. */
  readonly sinceMs: number;
}

/**
 * Whether an open partition was rebuilt on another Redis since: this one was the primary once, was cut off, and came back as it was. Its own history
 * cannot tell, the record can.
 */
export function isLeftBehind(partition: number, history: string, rebuilt: ReadonlyMap<number, string>): boolean {
  const last = rebuilt.get(partition);
  return last !== undefined && last !== history;
}
