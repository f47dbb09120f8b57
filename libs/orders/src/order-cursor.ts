/** Where a page of a buyer's orders ended. `createUs`: Unix microseconds. */
export interface OrderCursor {
  readonly createUs: string;
  readonly orderId: string;
}

/** Before the first page: later than any order. */
const START: OrderCursor = { createUs: '9000000000000000', orderId: '9223372036854775807' };
const SHAPE = /^(-?\d{1,16})\.([1-9]\d{0,18})$/;
const LONGEST = 64;

/** An opaque text without characters that a query string would have to escape. */
export function encodeCursor(cursor: OrderCursor): string {
  return Buffer.from(`${cursor.createUs}.${cursor.orderId}`).toString('base64url');
}

/** No cursor is the start; undefined where the text was not made by `encodeCursor`. */
export function decodeCursor(text: string | undefined): OrderCursor | undefined {
  if (text === undefined) return START;
  if (text.length > LONGEST) return undefined;
  const [, createUs, orderId] = SHAPE.exec(Buffer.from(text, 'base64url').toString('latin1')) ?? [];
  if (createUs === undefined || orderId === undefined) return undefined;
  if (BigInt(orderId) > 9223372036854775807n) return undefined;
  return { createUs, orderId };
}
