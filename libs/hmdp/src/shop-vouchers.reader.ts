import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { VOUCHER_PAGE_SIZE, VoucherReader, type VoucherView } from '#vouchers';
import { formatLocalTime } from './local-time.js';
import { type OrdinaryVoucher, OrdinaryVoucherRepository } from './ordinary-voucher.repository.js';

/** hmdp's list has no pages; of a shop with more, the newest are shown. */
const MAX_PAGES = 5;
const REMEMBER_MS = 1_000;
const REMEMBERED_SHOPS = 1_000;

/** A voucher as hmdp's pages read it; members without a value are left out. Ids are strings. */
export type HmdpVoucher = Readonly<Record<string, string | number>>;

/** The vouchers of a shop that are on the shelf, with the units left of those on sale. */
@Injectable()
export class ShopVouchersReader {
  private readonly remembered = new LRUCache<string, Promise<readonly HmdpVoucher[]>>({
    max: REMEMBERED_SHOPS,
    ttl: REMEMBER_MS,
  });

  constructor(
    private readonly vouchers: VoucherReader,
    private readonly ordinary: OrdinaryVoucherRepository,
  ) {}

  /**
   * The shop's vouchers by ascending id. A crowd that loads the same page shares one reading per second; so `stock` may be a second old.
   * @throws DatabaseUnavailableError
   */
  list(shopId: string): Promise<readonly HmdpVoucher[]> {
    const present = this.remembered.get(shopId);
    if (present !== undefined) return present;
    const reading = this.read(shopId);
    this.remembered.set(shopId, reading);
    reading.catch(() => {
      if (this.remembered.peek(shopId) === reading) this.remembered.delete(shopId);
    });
    return reading;
  }

  /** Forgets what is remembered of the shop: it has a new voucher. */
  forget(shopId: string): void {
    this.remembered.delete(shopId);
  }

  private async read(shopId: string): Promise<readonly HmdpVoucher[]> {
    const [sales, ordinary] = await Promise.all([
      this.sales(shopId),
      this.ordinary.list(shopId, MAX_PAGES * VOUCHER_PAGE_SIZE),
    ]);
    const offShelf = await this.ordinary.offShelf(sales.map(({ voucherId }) => voucherId));
    const shown = [
      ...sales.filter(({ voucherId }) => !offShelf.has(voucherId)).map(ofSale),
      ...ordinary.map((voucher) => ofOrdinary(shopId, voucher)),
    ];
    return shown.sort((one, other) => compareIds(String(one['id']), String(other['id'])));
  }

  private async sales(shopId: string): Promise<VoucherView[]> {
    const found: VoucherView[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const { items, nextCursor } = await this.vouchers.listVouchers(shopId, cursor);
      found.push(...items);
      if (nextCursor === undefined) break;
      cursor = nextCursor;
    }
    return found;
  }
}

function ofSale(view: VoucherView): HmdpVoucher {
  return {
    id: view.voucherId,
    ...(view.shopId === undefined ? {} : { shopId: view.shopId }),
    title: view.title,
    ...(view.subTitle === undefined ? {} : { subTitle: view.subTitle }),
    ...(view.rules === undefined ? {} : { rules: view.rules }),
    payValue: view.payValue,
    actualValue: view.actualValue,
    type: 1,
    stock: view.unitsLeft,
    beginTime: formatLocalTime(Date.parse(view.beginTime)),
    endTime: formatLocalTime(Date.parse(view.endTime)),
  };
}

function ofOrdinary(shopId: string, voucher: OrdinaryVoucher): HmdpVoucher {
  return {
    id: voucher.id,
    shopId,
    title: voucher.title,
    ...(voucher.subTitle === null ? {} : { subTitle: voucher.subTitle }),
    ...(voucher.rules === null ? {} : { rules: voucher.rules }),
    payValue: voucher.payValue,
    actualValue: voucher.actualValue,
    type: 0,
  };
}

/** Canonical decimals: the longer one is the larger one. */
function compareIds(one: string, other: string): number {
  return one.length - other.length || (one < other ? -1 : one > other ? 1 : 0);
}
