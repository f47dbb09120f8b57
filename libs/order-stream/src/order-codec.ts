import { isCanonicalId } from './canonical-id.js';
import type { DecodedEntry, OrderEntry, RawEntry } from './order-entry.js';

/** The fields of an entry on the wire, spelled exactly so. Admission's script writes the same names. */
export const ORDER_FIELDS = { userId: 'userId', voucherId: 'voucherId', orderId: 'id' } as const;

const SHOWN_VALUE_CHARACTERS = 40;

/** The entry's fields and values in turn, as XADD takes them. Throws a TypeError for an id that is not canonical. */
export function encodeOrder(order: OrderEntry): string[] {
  for (const [name, value] of Object.entries(order)) {
    if (!isCanonicalId(value)) throw new TypeError(`order.${name} is no canonical id: ${shown(value)}`);
  }
  return [
    ORDER_FIELDS.userId,
    order.userId,
    ORDER_FIELDS.voucherId,
    order.voucherId,
    ORDER_FIELDS.orderId,
    order.orderId,
  ];
}

/** What an entry says. Further fields are harmless; a missing, misspelled or non-canonical one makes it MALFORMED with the cause. Never throws. */
export function decodeEntry(entry: RawEntry): DecodedEntry {
  const { entryId, fields } = entry;
  if (fields === null) return { kind: 'VANISHED', entryId };
  for (const name of Object.values(ORDER_FIELDS)) {
    const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (isCanonicalId(value)) continue;
    const cause = value === undefined ? `field "${name}" is missing` : `field "${name}" is no id: ${shown(value)}`;
    return { kind: 'MALFORMED', entryId, cause, fields };
  }
  const order = {
    orderId: fields[ORDER_FIELDS.orderId] as string,
    userId: fields[ORDER_FIELDS.userId] as string,
    voucherId: fields[ORDER_FIELDS.voucherId] as string,
  };
  return { kind: 'ORDER', entryId, order };
}

/** An entry as the driver hands it out: id and flat fields and values, or null fields where it was deleted. */
export function rawEntry(entryId: string, flat: readonly string[] | null): RawEntry {
  if (flat === null) return { entryId, fields: null };
  const fields: Record<string, string> = Object.create(null) as Record<string, string>;
  for (let at = 0; at + 1 < flat.length; at += 2) fields[flat[at] as string] = flat[at + 1] as string;
  return { entryId, fields };
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length <= SHOWN_VALUE_CHARACTERS
    ? text
    : `${text.slice(0, SHOWN_VALUE_CHARACTERS)}... (${text.length} characters)`;
}
