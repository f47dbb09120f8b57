import { isId } from '#http';
import { type NewVoucher, VOUCHER_LIMITS } from '#vouchers';
import { parseLocalTime } from './local-time.js';

/** What an ordinary voucher has: no sale. */
export type NewOrdinaryVoucher = Omit<NewVoucher, 'stock' | 'beginMs' | 'endMs'>;

/** A checked voucher, or the names of the fields that are bad or missing. */
export type Reading<T> =
  { readonly ok: true; readonly voucher: T } | { readonly ok: false; readonly fields: readonly string[] };

const { units, cents, titleLength, subTitleLength, rulesLength } = VOUCHER_LIMITS;

/** Reads the body of POST /voucher. Unknown fields are ignored, null counts as absent, digits in a string as a number: as hmdp's JSON reader does. */
export function readOrdinaryVoucher(body: unknown): Reading<NewOrdinaryVoucher> {
  const fields = new BodyFields(body);
  const voucher = ordinary(fields);
  return voucher === undefined || fields.bad.length > 0 ? { ok: false, fields: fields.bad } : { ok: true, voucher };
}

/** Reads the body of POST /voucher/seckill. Times without zone are of the zone of this process. */
export function readSeckillVoucher(body: unknown): Reading<NewVoucher> {
  const fields = new BodyFields(body);
  const voucher = ordinary(fields);
  const stock = fields.number('stock', 1, units);
  const beginMs = fields.time('beginTime', 0);
  const endMs = fields.time('endTime', (beginMs ?? 0) + 1);
  if (
    voucher === undefined ||
    stock === undefined ||
    beginMs === undefined ||
    endMs === undefined ||
    fields.bad.length > 0
  )
    return { ok: false, fields: fields.bad };
  return { ok: true, voucher: { ...voucher, stock, beginMs, endMs } };
}

function ordinary(fields: BodyFields): NewOrdinaryVoucher | undefined {
  const shopId = fields.id('shopId');
  const title = fields.text('title', titleLength);
  const subTitle = fields.optionalText('subTitle', subTitleLength);
  const rules = fields.optionalText('rules', rulesLength);
  const payValue = fields.number('payValue', 0, cents);
  const actualValue = fields.number('actualValue', 1, cents);
  if (shopId === undefined || title === undefined || payValue === undefined || actualValue === undefined)
    return undefined;
  return {
    shopId,
    title,
    ...(subTitle === undefined ? {} : { subTitle }),
    ...(rules === undefined ? {} : { rules }),
    payValue,
    actualValue,
  };
}

/** The fields of a JSON body; remembers which were bad. */
class BodyFields {
  readonly bad: string[] = [];
  private readonly body: Readonly<Record<string, unknown>>;

  constructor(body: unknown) {
    this.body = typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {};
  }

  id(name: string): string | undefined {
    const value = this.body[name];
    const text = Number.isSafeInteger(value) ? String(value) : value;
    return isId(text) ? text : this.refuse(name);
  }

  number(name: string, min: number, max: number): number | undefined {
    const value = this.body[name];
    const number = typeof value === 'string' && /^[0-9]{1,15}$/.test(value) ? Number(value) : value;
    return typeof number === 'number' && Number.isSafeInteger(number) && number >= min && number <= max
      ? number
      : this.refuse(name);
  }

  time(name: string, minMs: number): number | undefined {
    const ms = parseLocalTime(this.body[name]);
    return ms !== undefined && ms >= minMs ? ms : this.refuse(name);
  }

  text(name: string, maxLength: number): string | undefined {
    const value = this.body[name];
    const isPlain = typeof value === 'string' && !value.includes('\0') && !/\p{Surrogate}/u.test(value);
    return isPlain && value.length >= 1 && value.length <= maxLength ? value : this.refuse(name);
  }

  /** Absent, null and empty are the same. */
  optionalText(name: string, maxLength: number): string | undefined {
    const value = this.body[name];
    return value === undefined || value === null || value === '' ? undefined : this.text(name, maxLength);
  }

  private refuse(name: string): undefined {
    this.bad.push(name);
  }
}
