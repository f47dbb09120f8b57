import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, SaleApp, SaleStores, tokenOf } from '../support/sale-app.js';

let stores: SaleStores;
let app: SaleApp;

beforeAll(async () => {
  stores = await SaleStores.open();
  app = await SaleApp.start(stores);
  await app.openPartition();
});

afterAll(async () => {
  await app.close();
  await stores.close();
});

const codeOf = ({ json }: Answer): string => (json as { code: string }).code;
const mine = (voucherId: string, userId: string) =>
  app.call('GET', `/v1/vouchers/${voucherId}/orders/mine`, { as: tokenOf(userId) });
const find = (voucherId: string, userId: string, orderId: string) =>
  app.call('GET', `/v1/vouchers/${voucherId}/orders/${orderId}`, { as: tokenOf(userId) });

/** Another process of the product, which remembers nothing. */
async function withFreshProcess(work: (fresh: SaleApp) => Promise<void>): Promise<void> {
  const fresh = await SaleApp.start(stores);
  try {
    await work(fresh);
  } finally {
    await fresh.close();
  }
}

describe('keys that another hand damaged are trouble that passes, never a defect', () => {
  it('sells a voucher whose place in Redis is of another type: the record knows it', async () => {
    const voucherId = await app.putOnSale();
    const key = `seckill:where:${voucherId}`;
    await stores.commands.del(key);
    await stores.commands.rpush(key, 'x');
    await withFreshProcess(async (fresh) => {
      expect((await fresh.buy(voucherId, '7')).status).toBe(202);
      expect(codeOf(await fresh.buy(voucherId, '7'))).toBe('DUPLICATE_ORDER');
    });
  });

  it('answers 503 where the marks are of another type', async () => {
    const voucherId = await app.putOnSale();
    await stores.commands.set(`seckill:order:{0}:${voucherId}`, 'x');
    expect(codeOf(await app.buy(voucherId, '7'))).toBe('UNAVAILABLE');
    expect(codeOf(await mine(voucherId, '7'))).toBe('UNAVAILABLE');
    expect(codeOf(await find(voucherId, '7', '42'))).toBe('UNAVAILABLE');
  });

  it.each(['x', '', '007', '99999999999999999999'])(
    'answers 503 to a buyer whose mark is no order id: "%s"',
    async (mark) => {
      const voucherId = await app.putOnSale();
      await stores.commands.hset(`seckill:order:{0}:${voucherId}`, '7', mark);
      await stores.commands.decr(`seckill:stock:{0}:${voucherId}`);
      expect(codeOf(await app.buy(voucherId, '7'))).toBe('UNAVAILABLE');
      expect(codeOf(await mine(voucherId, '7'))).toBe('UNAVAILABLE');
      expect(codeOf(await find(voucherId, '7', '42'))).toBe('UNAVAILABLE');
      expect((await app.buy(voucherId, '8')).status).toBe(202);
    },
  );
});
