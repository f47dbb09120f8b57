import { setImmediate as nextTick } from 'node:timers/promises';
import pg from 'pg';
import { register } from 'prom-client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Database } from '#database';
import { OrderRepository } from '#orders';
import { EpochRegister, type RebuildRequest } from '#sale-register';
import { AdmissionService, unixSecondOfOrderId } from '#voucher-order';
import { ADMIN, SaleApp, SaleStores, tokenOf, type Answer } from '../support/sale-app.js';

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

const codeOf = ({ json }: Answer): string => (json as { code?: string }).code ?? 'none';
const orderOf = ({ json }: Answer): string => (json as { orderId: string }).orderId;
const status = (voucherId: string, userId: string, orderId: string, on = app): Promise<Answer> =>
  on.call('GET', `/v1/vouchers/${voucherId}/orders/${orderId}`, { as: tokenOf(userId) });
const mine = (voucherId: string, userId: string, on = app): Promise<Answer> =>
  on.call('GET', `/v1/vouchers/${voucherId}/orders/mine`, { as: tokenOf(userId) });
const stockOf = async (voucherId: string): Promise<number> =>
  Number(await stores.commands.get(`seckill:stock:{0}:${voucherId}`));
const marksOf = (voucherId: string): Promise<number> => stores.commands.hlen(`seckill:order:{0}:${voucherId}`);

/** Stores the order as the drain wing would. */
async function store(voucherId: string, userId: string, orderId: string): Promise<void> {
  const outcome = await app.get(OrderRepository).createOrders({
    partition: 0,
    epochNumber: await app.get(OrderRepository).epochNumber(0),
    orders: [{ voucherId, userId, orderId, acceptedAtMs: Date.now() }],
  });
  expect(outcome).toMatchObject({ kind: 'DONE', results: [{ kind: 'STORED' }] });
}

/** Takes the database away from the applications while `work` runs. */
async function withoutDatabase(work: () => Promise<void>): Promise<void> {
  const url = new URL(stores.databaseUrl);
  const name = url.pathname.slice(1);
  url.pathname = '/postgres';
  const operator = new pg.Client({ connectionString: url.href });
  await operator.connect();
  try {
    await operator.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`);
    await operator.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND application_name = 'flash-sale'",
      [name],
    );
    for (const each of [app, other]) {
      const database = each.get(Database);
      const isAway = (): Promise<boolean> =>
        database.query('SELECT 1').then(
          () => false,
          () => true,
        );
      await expect.poll(isAway).toBe(true);
    }
    await work();
  } finally {
    await operator.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS true`);
    await operator.end();
    for (const each of [app, other]) await each.get(Database).whenReady(30_000);
  }
}

/** Closes the partition while `work` runs. Answers the rebuilds that were wished for. */
async function withClosedEpoch(work: () => Promise<void>): Promise<RebuildRequest[]> {
  const wishes: RebuildRequest[] = [];
  const stop = app.get(EpochRegister).onRebuildRequested((wish) => wishes.push(wish));
  const epoch = (await stores.commands.getdel('seckill:epoch:{0}')) ?? '';
  await work();
  await stores.commands.set('seckill:epoch:{0}', epoch);
  stop();
  return wishes;
}

/** Script calls that the server has run, by digest or by text. */
/** Batches of purchases sent by this process so far. */
async function batchesSent(): Promise<number> {
  const metric = await register.getSingleMetric('seckill_admission_batch_size')?.get();
  const values = (metric?.values ?? []) as { metricName?: string; value: number }[];
  return values.find(({ metricName }) => metricName?.endsWith('_count') === true)?.value ?? 0;
}

async function scriptCalls(): Promise<number> {
  const info = await stores.commands.info('commandstats');
  return [...info.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)].reduce((sum, [, calls]) => sum + Number(calls), 0);
}

describe('a purchase', () => {
  it('is answered 202 with the order, where to read it, and is on its way with the same ids everywhere', async () => {
    const voucherId = await app.putOnSale();
    const buyer = '9007199254740993';
    const answer = await app.buy(voucherId, buyer);
    expect(answer.status, answer.text).toBe(202);
    const orderId = orderOf(answer);
    expect(answer.json).toEqual({ orderId, voucherId, status: 'QUEUED' });
    expect(answer.headers).toMatchObject({
      location: `/v1/vouchers/${voucherId}/orders/${orderId}`,
      'cache-control': 'no-store',
    });
    expect(await stores.commands.hgetall(`seckill:order:{0}:${voucherId}`)).toEqual({ [buyer]: orderId });
    const [entry] = await stores.commands.xrevrange('stream.orders:{0}', '+', '-', 'COUNT', 1);
    expect(entry?.[1]).toEqual(expect.arrayContaining(['userId', buyer, 'voucherId', voucherId, 'id', orderId]));
    expect(Math.abs(unixSecondOfOrderId(orderId) - Date.now() / 1_000)).toBeLessThan(60);
  });

  it('takes no body, and reads none: whatever is sent with it', async () => {
    for (const [body, type] of [
      ['{broken', 'application/json'],
      ['x', 'text/plain'],
      ['', 'application/json'],
      ['x'.repeat(200_000), 'application/octet-stream'],
    ] as const) {
      const voucherId = await app.putOnSale();
      const answer = await app.call('POST', `/v1/vouchers/${voucherId}/orders`, {
        as: tokenOf(user()),
        body,
        headers: { 'content-type': type },
      });
      expect(answer.status, answer.text).toBe(202);
    }
  });

  it('is refused by precedence, each refusal with its own code', async () => {
    const voucherId = await app.putOnSale({ stock: 1 });
    const path = `/v1/vouchers/${voucherId}/orders`;
    const buyer = user();
    expect(codeOf(await app.call('POST', path))).toBe('UNAUTHENTICATED');
    expect(codeOf(await app.buy('07', buyer))).toBe('INVALID_ARGUMENT');
    expect(codeOf(await app.buy('9223372036854775807', buyer))).toBe('VOUCHER_NOT_FOUND');
    const orderId = orderOf(await app.buy(voucherId, buyer));
    expect((await app.buy(voucherId, buyer)).json).toMatchObject({ status: 409, code: 'DUPLICATE_ORDER', orderId });
    expect((await app.buy(voucherId, user())).json).toMatchObject({ status: 409, code: 'SOLD_OUT' });
    const beginTime = new Date(Date.now() + 60_000).toISOString();
    const early = await app.putOnSale({ beginTime });
    expect((await app.buy(early, user())).json).toMatchObject({ status: 409, code: 'NOT_STARTED', beginTime });
    const over = await app.putOnSale({ beginTime: '2020-01-01T00:00:00Z', endTime: '2020-01-02T00:00:00Z' });
    expect((await app.buy(over, user())).json).toMatchObject({
      status: 409,
      code: 'ENDED',
      endTime: '2020-01-02T00:00:00.000Z',
    });
    expect([await stockOf(early), await stockOf(over)]).toEqual([3, 3]);
  });

  it.each(['0', '-1', '+7', '1abc', '1e3', '0x10', '12.7', '9223372036854775808', '9'.repeat(40), '%20', '%EF%BC%91'])(
    'of voucher "%s" touches nothing: 400',
    async (id) => {
      const keys = await stores.commands.dbsize();
      expect((await app.buy(id, user())).json).toMatchObject({ status: 400, code: 'INVALID_ARGUMENT' });
      expect(await stores.commands.dbsize()).toBe(keys);
    },
  );

  it('repeated after a lost answer names the one order, from any instance', async () => {
    const voucherId = await app.putOnSale();
    const buyer = user();
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, turn) => (turn % 2 === 0 ? app : other).buy(voucherId, buyer)),
    );
    expect(new Set(answers.map(orderOf)).size).toBe(1);
    expect(answers.filter((answer) => answer.status === 202)).toHaveLength(1);
    expect([await stockOf(voucherId), await marksOf(voucherId)]).toEqual([2, 1]);
  });

  it('of one who keeps clicking takes one unit: all others get theirs', async () => {
    const voucherId = await app.putOnSale({ stock: 5 });
    const clicker = user();
    const clicks = await Promise.all(Array.from({ length: 500 }, () => app.buy(voucherId, clicker)));
    expect(clicks.filter((answer) => answer.status === 202)).toHaveLength(1);
    expect(new Set(clicks.map(orderOf)).size).toBe(1);
    const others = await Promise.all(Array.from({ length: 4 }, () => app.buy(voucherId, user())));
    expect(others.map((answer) => answer.status)).toEqual([202, 202, 202, 202]);
    expect(await stockOf(voucherId)).toBe(0);
  });

  it.each([1, 2, 100])('sells exactly %i units to a crowd on two instances', async (stock) => {
    const voucherId = await app.putOnSale({ stock });
    const crowd = await Promise.all(
      Array.from({ length: stock + 200 }, (_, turn) => (turn % 2 === 0 ? app : other).buy(voucherId, user())),
    );
    const accepted = crowd.filter((answer) => answer.status === 202);
    expect(accepted).toHaveLength(stock);
    expect(crowd.filter((answer) => codeOf(answer) === 'SOLD_OUT')).toHaveLength(200);
    expect(new Set(accepted.map(orderOf)).size).toBe(stock);
    expect([await stockOf(voucherId), await marksOf(voucherId)]).toEqual([0, stock]);
  });
});

describe('the crowd of one tick', () => {
  it('travels in one script call, over many vouchers', async () => {
    const vouchers = await Promise.all(Array.from({ length: 4 }, () => app.putOnSale({ stock: 50 })));
    const admissions = app.get(AdmissionService);
    await Promise.all(vouchers.map((voucherId) => admissions.admit(voucherId, user())));
    const before = await scriptCalls();
    const outcomes = await Promise.all(
      Array.from({ length: 400 }, (_, turn) => admissions.admit(vouchers[turn % 4] ?? '', user())),
    );
    expect(await scriptCalls()).toBe(before + 1);
    expect(outcomes.filter(({ kind }) => kind === 'ACCEPTED')).toHaveLength(4 * 49);
    expect(outcomes.filter(({ kind }) => kind === 'SOLD_OUT')).toHaveLength(400 - 4 * 49);
  });

  it('that comes after a call was sent travels in another', async () => {
    const voucherId = await app.putOnSale({ stock: 50 });
    const admissions = app.get(AdmissionService);
    await admissions.admit(voucherId, user());
    const before = await scriptCalls();
    const sentBefore = await batchesSent();
    const first = admissions.admit(voucherId, user());
    while ((await batchesSent()) === sentBefore) await nextTick();
    await Promise.all([first, admissions.admit(voucherId, user())]);
    expect(await scriptCalls()).toBe(before + 2);
  });

  it('above MAX_IN_FLIGHT is refused before any effect', async () => {
    const small = await SaleApp.start(stores, { MAX_IN_FLIGHT: '10' });
    const voucherId = await app.putOnSale({ stock: 50 });
    const admissions = small.get(AdmissionService);
    const outcomes = await Promise.all(Array.from({ length: 25 }, () => admissions.admit(voucherId, user())));
    expect(outcomes.map(({ kind }) => kind).sort()).toEqual([
      ...Array<string>(10).fill('ACCEPTED'),
      ...Array<string>(15).fill('OVERLOADED'),
    ]);
    expect([await stockOf(voucherId), await marksOf(voucherId)]).toEqual([40, 10]);
    expect((await admissions.admit(voucherId, user())).kind).toBe('ACCEPTED');
    await small.close();
  });
});

describe('a voucher that the register lacks', () => {
  it('is 503 while the record knows it, and its rebuild is wished for; where the record does not know it either it is 404', async () => {
    const voucherId = await app.putOnSale();
    await stores.commands.del(`seckill:sale:{0}:${voucherId}`, `seckill:stock:{0}:${voucherId}`);
    const wishes: RebuildRequest[] = [];
    const stop = app.get(EpochRegister).onRebuildRequested((wish) => wishes.push(wish));
    const answers = await Promise.all(Array.from({ length: 20 }, () => app.buy(voucherId, user())));
    stop();
    expect(new Set(answers.map(codeOf))).toEqual(new Set(['UNAVAILABLE']));
    expect(answers[0]?.headers['retry-after']).toBe('1');
    expect(wishes[0]).toEqual({ partition: 0, voucherId, reason: 'NOT_PUBLISHED' });
    expect(wishes.length).toBeLessThan(20);
    expect(await stores.commands.exists(`seckill:stock:{0}:${voucherId}`)).toBe(0);
    await stores.sql.query('DELETE FROM tb_voucher WHERE id = $1', [voucherId]);
    await expect.poll(async () => codeOf(await app.buy(voucherId, user()))).toBe('VOUCHER_NOT_FOUND');
  });

  it('is found by the record where Redis lost only the entry of the directory', async () => {
    const voucherId = await app.putOnSale();
    await stores.commands.del(`seckill:where:${voucherId}`);
    expect((await other.buy(voucherId, user())).status).toBe(202);
  });

  it('is 503 while the database is away, known or not', async () => {
    await withoutDatabase(async () => {
      const answer = await app.buy('8999999999999999999', user());
      expect(answer.json).toMatchObject({ status: 503, code: 'UNAVAILABLE' });
      expect(answer.headers['retry-after']).toBe('1');
    });
  });
});

describe('a closed partition', () => {
  it('answers 503 without effect and wishes to be looked at, once for a whole crowd', async () => {
    const voucherId = await app.putOnSale();
    const wishes = await withClosedEpoch(async () => {
      const crowd = await Promise.all(Array.from({ length: 50 }, () => app.buy(voucherId, user())));
      expect(new Set(crowd.map(codeOf))).toEqual(new Set(['UNAVAILABLE']));
    });
    expect(wishes[0]).toEqual({ partition: 0, voucherId: undefined, reason: 'EPOCH' });
    expect(wishes.length).toBeLessThan(10);
    expect([await stockOf(voucherId), await marksOf(voucherId)]).toEqual([3, 0]);
    expect((await app.buy(voucherId, user())).status).toBe(202);
  });
});

describe('an order', () => {
  it('is QUEUED at once from every instance, then stored, and nobody else sees it', async () => {
    const voucherId = await app.putOnSale();
    const buyer = user();
    const orderId = orderOf(await app.buy(voucherId, buyer));
    const queued = await status(voucherId, buyer, orderId, other);
    expect(queued.json).toMatchObject({ orderId, voucherId, userId: buyer, status: 'QUEUED' });
    expect(queued.headers).toMatchObject({ 'retry-after': '1', 'cache-control': 'no-store' });
    expect(codeOf(await status(voucherId, user(), orderId))).toBe('ORDER_NOT_FOUND');
    await store(voucherId, buyer, orderId);
    const stored = await status(voucherId, buyer, orderId, other);
    expect(stored.json).toMatchObject({ orderId, userId: buyer, status: 'UNPAID', payType: 1 });
    expect(stored.headers['retry-after']).toBeUndefined();
    expect(codeOf(await status(voucherId, user(), orderId))).toBe('ORDER_NOT_FOUND');
    const elsewhere = await app.putOnSale();
    expect(codeOf(await status(elsewhere, buyer, orderId))).toBe('ORDER_NOT_FOUND');
    expect(codeOf(await status(voucherId, buyer, '123456'))).toBe('ORDER_NOT_FOUND');
    expect(codeOf(await status('9223372036854775807', buyer, orderId))).toBe('ORDER_NOT_FOUND');
  });

  it('is found by an administrator whoever bought, stored or still on its way', async () => {
    const voucherId = await app.putOnSale();
    const buyer = user();
    const orderId = orderOf(await app.buy(voucherId, buyer));
    const look = (voucher = voucherId, order = orderId): Promise<Answer> =>
      other.call('GET', `/v1/vouchers/${voucher}/orders/${order}`, { as: ADMIN });
    expect((await look()).json).toMatchObject({ orderId, userId: buyer, status: 'QUEUED' });
    expect(codeOf(await look(await app.putOnSale()))).toBe('ORDER_NOT_FOUND');
    expect(codeOf(await look(voucherId, String(BigInt(orderId) + 1n)))).toBe('ORDER_NOT_FOUND');
    await store(voucherId, buyer, orderId);
    expect((await look()).json).toMatchObject({ orderId, userId: buyer, status: 'UNPAID' });
  });

  it('that was rejected is REJECTED with its reason', async () => {
    const voucherId = await app.putOnSale();
    const buyer = user();
    const orderId = orderOf(await app.buy(voucherId, buyer));
    await app
      .get(OrderRepository)
      .rejectOrder(0, { orderId, userId: buyer, voucherId, acceptedAtMs: Date.now() }, 'NO_UNITS', 'tests');
    expect((await status(voucherId, buyer, orderId)).json).toMatchObject({ status: 'REJECTED', reason: 'NO_UNITS' });
    expect((await mine(voucherId, buyer)).json).toMatchObject({ items: [{ orderId, status: 'REJECTED' }] });
  });

  it('while the database is away: QUEUED by the mark, for its buyer; 503 where neither store can decide', async () => {
    const voucherId = await app.putOnSale();
    const [buyer, stranger] = [user(), user()];
    const orderId = orderOf(await app.buy(voucherId, buyer));
    await withoutDatabase(async () => {
      const late = user();
      const accepted = await app.buy(voucherId, late);
      expect(accepted.status, accepted.text).toBe(202);
      for (const [who, order] of [
        [buyer, orderId],
        [late, orderOf(accepted)],
      ] as const) {
        const seen = await status(voucherId, who, order, other);
        expect(seen.json).toMatchObject({ orderId: order, status: 'QUEUED' });
        expect(seen.headers['retry-after']).toBe('1');
      }
      const own = await mine(voucherId, buyer);
      expect(own.json).toMatchObject({ items: [{ orderId, status: 'QUEUED' }] });
      expect(own.headers['retry-after']).toBe('1');
      expect((await mine(voucherId, stranger)).json).toEqual({ items: [] });
      expect(codeOf(await status(voucherId, stranger, orderId))).toBe('UNAVAILABLE');
      expect(codeOf(await app.call('GET', '/v1/me/orders', { as: tokenOf(buyer) }))).toBe('UNAVAILABLE');
      expect((await app.call('GET', `/v1/vouchers/${voucherId}/orders/${orderId}`, { as: ADMIN })).json).toMatchObject({
        status: 'QUEUED',
      });
    });
  });

  it('while the partition is closed: what the record knows is told, what it does not know is 503', async () => {
    const voucherId = await app.putOnSale();
    const buyer = user();
    const orderId = orderOf(await app.buy(voucherId, buyer));
    await store(voucherId, buyer, orderId);
    const epochMarks = `seckill:order:{0}:${voucherId}`;
    await withClosedEpoch(async () => {
      await stores.commands.del(epochMarks);
      expect((await status(voucherId, buyer, orderId)).json).toMatchObject({ status: 'UNPAID' });
      expect((await mine(voucherId, buyer)).json).toMatchObject({ items: [{ orderId, status: 'UNPAID' }] });
      expect(codeOf(await status(voucherId, user(), String(BigInt(orderId) + 1n)))).toBe('UNAVAILABLE');
      expect(codeOf(await mine(voucherId, user()))).toBe('UNAVAILABLE');
      await stores.commands.hset(epochMarks, buyer, orderId);
    });
  });

  it('is listed among mine and among all of mine, newest first, page by page', async () => {
    const buyer = user();
    const orders: string[] = [];
    for (let count = 0; count < 25; count += 1) {
      const voucherId = await app.putOnSale();
      const orderId = orderOf(await app.buy(voucherId, buyer));
      expect((await mine(voucherId, buyer)).json).toMatchObject({ items: [{ orderId, status: 'QUEUED' }] });
      await store(voucherId, buyer, orderId);
      expect((await mine(voucherId, buyer)).json).toMatchObject({ items: [{ orderId, status: 'UNPAID' }] });
      orders.unshift(orderId);
    }
    const first = await app.call('GET', '/v1/me/orders?cursor=', { as: tokenOf(buyer) });
    const { items, nextCursor } = first.json as { items: { orderId: string }[]; nextCursor: string };
    const second = await other.call('GET', `/v1/me/orders?cursor=${encodeURIComponent(nextCursor)}`, {
      as: tokenOf(buyer),
    });
    const rest = second.json as { items: { orderId: string }[]; nextCursor?: string };
    expect([...items, ...rest.items].map(({ orderId }) => orderId)).toEqual(orders);
    expect(rest.nextCursor).toBeUndefined();
    expect(codeOf(await app.call('GET', '/v1/me/orders?cursor=odd', { as: tokenOf(buyer) }))).toBe('INVALID_ARGUMENT');
    expect(codeOf(await mine('9223372036854775807', buyer))).toBe('VOUCHER_NOT_FOUND');
  });
});

describe('a Redis in trouble', () => {
  it('that is frozen is answered 503 OUTCOME_UNKNOWN in time with the id that may exist, and the repeat names the one order', async () => {
    const voucherId = await app.putOnSale();
    const buyer = user();
    await app.buy(voucherId, user());
    stores.redis.signal('SIGSTOP');
    let answer: Answer;
    try {
      answer = await app.buy(voucherId, buyer);
    } finally {
      stores.redis.signal('SIGCONT');
    }
    expect(answer.json).toMatchObject({ status: 503, code: 'OUTCOME_UNKNOWN' });
    const { candidateOrderId } = answer.json as { candidateOrderId: string };
    expect(candidateOrderId).toMatch(/^[1-9]\d+$/);
    let repeated: Answer | undefined;
    await expect
      .poll(async () => {
        repeated = await other.buy(voucherId, buyer);
        return [202, 409].includes(repeated.status);
      })
      .toBe(true);
    if (repeated?.status === 409) expect(orderOf(repeated)).toBe(candidateOrderId);
    expect(await stores.commands.hget(`seckill:order:{0}:${voucherId}`, buyer)).toBe(orderOf(repeated as Answer));
    expect((await stockOf(voucherId)) + (await marksOf(voucherId))).toBe(3);
  });

  it('that is away is answered 503 UNAVAILABLE without effect, and sells again when it is back', async () => {
    const voucherId = await app.putOnSale();
    await app.buy(voucherId, user());
    const buyer = user();
    await stores.redis.down();
    await expect.poll(async () => codeOf(await app.buy(voucherId, buyer))).toBe('UNAVAILABLE');
    const crowd = await Promise.all(Array.from({ length: 100 }, () => app.buy(voucherId, user())));
    expect(new Set(crowd.map((answer) => `${answer.status} ${codeOf(answer)}`))).toEqual(new Set(['503 UNAVAILABLE']));
    expect((await app.call('GET', `/v1/vouchers/${voucherId}`)).json).toMatchObject({ unitsLeft: 3 });
    expect(codeOf(await status(voucherId, buyer, '123456'))).toBe('UNAVAILABLE');
    await stores.redis.up();
    await expect.poll(async () => stockOf(voucherId).catch(() => -1), { timeout: 10_000 }).toBe(2);
    expect(await marksOf(voucherId)).toBe(1);
    await expect
      .poll(
        async () =>
          app.openPartition().then(
            () => true,
            () => false,
          ),
        { timeout: 10_000 },
      )
      .toBe(true);
    await expect.poll(async () => (await app.buy(voucherId, buyer)).status, { timeout: 10_000 }).toBe(202);
  });
});
