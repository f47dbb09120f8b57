import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Answer, SaleApp, SaleStores, ADMIN, tokenOf } from '../support/sale-app.js';

let stores: SaleStores;
let app: SaleApp;
let other: SaleApp;
let nextUser = 1_000;
const user = (): string => String((nextUser += 1));

beforeAll(async () => {
  stores = await SaleStores.open();
  app = await SaleApp.start(stores);
  other = await SaleApp.start(stores);
  await app.openPartition();
});

afterAll(async () => {
  await app.close();
  await other.close();
  await stores.close();
});

const codeOf = ({ status, json }: Answer): string => (status === 202 ? 'ACCEPTED' : (json as { code: string }).code);
const buy = async (voucherId: string, userId: string, on = app): Promise<string> =>
  codeOf(await on.call('POST', `/v1/vouchers/${voucherId}/orders`, { as: tokenOf(userId) }));

async function onSale(terms: { stock?: number; beginMs?: number; endMs?: number } = {}): Promise<string> {
  const { stock = 1, beginMs = Date.now() - 60_000, endMs = Date.now() + 3_600_000 } = terms;
  const body = {
    shopId: '1',
    title: 'Remembered',
    payValue: 1,
    actualValue: 2,
    stock,
    beginTime: new Date(beginMs).toISOString(),
    endTime: new Date(endMs).toISOString(),
  };
  return ((await app.call('POST', '/v1/vouchers', { as: ADMIN, body })).json as { voucherId: string }).voucherId;
}

/** Calls of admit.lua and friends that the server has run so far. */
async function scriptCalls(): Promise<number> {
  const stats = await stores.commands.info('commandstats');
  return [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)].reduce((sum, [, calls]) => sum + Number(calls), 0);
}

/** Buys as fresh users until a whole burst needs no script call but the periodic looks; the code that all of them heard. */
async function untilRemembered(voucherId: string, code: string, on = app): Promise<void> {
  await vi.waitFor(
    async () => {
      const before = await scriptCalls();
      const answers = await Promise.all(Array.from({ length: 50 }, () => buy(voucherId, user(), on)));
      expect(new Set(answers)).toEqual(new Set([code]));
      // One by one, each refusal would be a call of its own; the looks are few.
      for (let one = 0; one < 20; one += 1) expect(await buy(voucherId, user(), on)).toBe(code);
      expect((await scriptCalls()) - before).toBeLessThan(10);
    },
    { timeout: 15_000, interval: 100 },
  );
}

describe('refusals from memory', () => {
  it('hear of a sold-out sale without Redis; who bought still hears his order', async () => {
    const voucherId = await onSale({ stock: 3 });
    const buyers = [user(), user(), user()];
    for (const buyer of buyers) expect(await buy(voucherId, buyer)).toBe('ACCEPTED');
    await untilRemembered(voucherId, 'SOLD_OUT');
    for (const buyer of buyers) expect(await buy(voucherId, buyer)).toBe('DUPLICATE_ORDER');
  });

  it('end with a restock, at once and on every instance: the next purchase wins', async () => {
    const voucherId = await onSale({ stock: 1 });
    expect(await buy(voucherId, user())).toBe('ACCEPTED');
    for (let round = 0; round < 5; round += 1) {
      await untilRemembered(voucherId, 'SOLD_OUT', other);
      await untilRemembered(voucherId, 'SOLD_OUT');
      const answer = await app.call('PATCH', `/v1/vouchers/${voucherId}/stock`, { as: ADMIN, body: { delta: 2 } });
      expect(answer.status).toBe(200);
      // Told over Pub/Sub before the restock was answered to its caller; heard within moments.
      await vi.waitFor(async () => expect(await buy(voucherId, user(), other)).toBe('ACCEPTED'), { interval: 5 });
      expect(await buy(voucherId, user())).toBe('ACCEPTED');
    }
  });

  it('say not started before the window, and let it open on time', async () => {
    const beginMs = Date.now() + 2_500;
    const voucherId = await onSale({ stock: 5, beginMs });
    expect(await buy(voucherId, user())).toBe('NOT_STARTED');
    const [seconds, micros] = await stores.commands.time();
    const clockAheadMs = Number(seconds) * 1000 + Number(micros) / 1000 - Date.now();
    await vi.waitFor(
      async () => {
        const askedMs = Date.now() + clockAheadMs;
        const code = await buy(voucherId, user());
        const heardMs = Date.now() + clockAheadMs;
        if (heardMs < beginMs - 1) expect(code).toBe('NOT_STARTED');
        if (askedMs > beginMs + 1) expect(code).toBe('ACCEPTED');
        expect(code).toBe('ACCEPTED');
      },
      { timeout: 15_000, interval: 20 },
    );
  });

  it('say ended to strangers and name the order to buyers', async () => {
    const voucherId = await onSale({ stock: 2, endMs: Date.now() + 800 });
    const buyer = user();
    expect(await buy(voucherId, buyer)).toBe('ACCEPTED');
    await vi.waitFor(async () => expect(await buy(voucherId, user())).toBe('ENDED'), { timeout: 5_000 });
    await untilRemembered(voucherId, 'ENDED');
    expect(await buy(voucherId, buyer)).toBe('DUPLICATE_ORDER');
  });

  it('end when a mark is released by a rejection', async () => {
    const voucherId = await onSale({ stock: 1 });
    const buyer = user();
    const bought = await app.call('POST', `/v1/vouchers/${voucherId}/orders`, { as: tokenOf(buyer) });
    const { orderId } = bought.json as { orderId: string };
    await untilRemembered(voucherId, 'SOLD_OUT');
    const { SaleRegister } = await import('#sale-register');
    expect(await other.get(SaleRegister).release(0, { voucherId, userId: buyer, orderId })).toBe('RELEASED');
    await vi.waitFor(async () => expect(await buy(voucherId, user())).toBe('ACCEPTED'), { interval: 5 });
  });

  it('are checked against the state: marks added by hand are seen within a second', async () => {
    const voucherId = await onSale({ stock: 1 });
    expect(await buy(voucherId, user())).toBe('ACCEPTED');
    await untilRemembered(voucherId, 'SOLD_OUT');
    await stores.commands.hset(`seckill:order:{0}:${voucherId}`, '4242', '777');
    await vi.waitFor(async () => expect(await buy(voucherId, user())).toBe('UNAVAILABLE'), { timeout: 5_000 });
  });

  it('are not given when Redis is away: the answer is UNAVAILABLE', async () => {
    const alone = await SaleStores.open();
    const lonely = await SaleApp.start(alone);
    try {
      await lonely.openPartition();
      const body = {
        shopId: '1',
        title: 'Away',
        payValue: 1,
        actualValue: 2,
        stock: 1,
        beginTime: new Date(Date.now() - 60_000).toISOString(),
        endTime: new Date(Date.now() + 3_600_000).toISOString(),
      };
      const { voucherId } = (await lonely.call('POST', '/v1/vouchers', { as: ADMIN, body })).json as {
        voucherId: string;
      };
      expect(await buy(voucherId, user(), lonely)).toBe('ACCEPTED');
      const operator = new Redis(alone.redis.url);
      await vi.waitFor(async () => {
        const codes = await Promise.all(Array.from({ length: 20 }, () => buy(voucherId, user(), lonely)));
        expect(new Set(codes)).toEqual(new Set(['SOLD_OUT']));
        expect((await operator.pubsub('NUMSUB', `seckill:sale:{0}:${voucherId}`))[1]).toBe(1);
      });
      operator.disconnect();
      await alone.redis.down();
      await vi.waitFor(async () => expect(await buy(voucherId, user(), lonely)).toBe('UNAVAILABLE'), { interval: 5 });
      for (let one = 0; one < 20; one += 1) expect(await buy(voucherId, user(), lonely)).toBe('UNAVAILABLE');
      await alone.redis.up();
    } finally {
      await lonely.close();
      await alone.close();
    }
  });
});
