import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EpochRegister, SaleRegister, type RebuildRequest } from '#sale-register';
import { SeckillVoucher, StockChangeService, Voucher, VoucherReader } from '#vouchers';
import { Database } from '#database';
import { ADMIN, SaleApp, SaleStores, tokenOf, voucherTerms, type Answer } from '../support/sale-app.js';

let stores: SaleStores;
let app: SaleApp;
let other: SaleApp;

beforeAll(async () => {
  stores = await SaleStores.open();
  app = await SaleApp.start(stores, { STREAM_PARTITIONS: '2' });
  other = await SaleApp.start(stores, { STREAM_PARTITIONS: '2' });
  await app.openPartition(0);
  await app.openPartition(1);
});

afterAll(async () => {
  await app.close();
  await other.close();
  await stores.close();
});

const create = (body: unknown, headers: Record<string, string> = {}, on = app): Promise<Answer> =>
  on.call('POST', '/v1/vouchers', { as: ADMIN, body, headers });
const voucherIdOf = ({ json }: Answer): string => (json as { voucherId: string }).voucherId;
const see = async (voucherId: string): Promise<Record<string, unknown>> =>
  (await app.call('GET', `/v1/vouchers/${voucherId}`)).json as Record<string, unknown>;

async function row(voucherId: string) {
  const { rows } = await stores.sql.query<{
    units: number;
    stock: number;
    units_version: string;
    partition_id: number;
  }>('SELECT units, stock, units_version, partition_id FROM tb_seckill_voucher WHERE voucher_id = $1', [voucherId]);
  return rows[0];
}

async function ledger(voucherId: string) {
  const { rows } = await stores.sql.query<{ kind: string; before_value: string; after_value: string; actor: string }>(
    'SELECT kind, before_value, after_value, actor FROM tb_stock_ledger WHERE voucher_id = $1 ORDER BY id',
    [voucherId],
  );
  return rows;
}

async function sale(voucherId: string) {
  const reading = await app.get(SaleRegister).readSale((await row(voucherId))?.partition_id ?? 0, voucherId);
  if (reading.kind !== 'FOUND') throw new Error(`the sale is ${reading.kind}`);
  return reading.sale;
}

/** The rebuilds that were wished for while `work` ran. */
async function wishesOf(work: () => Promise<unknown>): Promise<RebuildRequest[]> {
  const wishes: RebuildRequest[] = [];
  const stop = app.get(EpochRegister).onRebuildRequested((wish) => wishes.push(wish));
  await work();
  stop();
  return wishes;
}

describe('creating a voucher', () => {
  it('stores both rows, the partition and a ledger line in one transaction and puts the voucher on sale', async () => {
    const answer = await create(voucherTerms({ subTitle: 'week days', rules: 'one each', stock: 7 }));
    expect(answer.status).toBe(201);
    const { voucherId } = answer.json as { voucherId: string };
    expect(answer.headers['location']).toBe(`/v1/vouchers/${voucherId}`);
    expect(answer.json).toMatchObject({
      shopId: '1',
      title: '100 for 80',
      subTitle: 'week days',
      rules: 'one each',
      payValue: 8_000,
      actualValue: 10_000,
      stock: 7,
      unitsLeft: 7,
      status: 'ON_SALE',
    });
    const partition = Number(BigInt(voucherId) % 2n);
    expect(await row(voucherId)).toEqual({ units: 7, stock: 7, units_version: '1', partition_id: partition });
    const partitions = await stores.sql.query('SELECT 1 FROM tb_partition WHERE partition_id = $1', [partition]);
    expect(partitions.rowCount).toBe(1);
    expect(await ledger(voucherId)).toEqual([
      { kind: 'PUBLICATION', before_value: '0', after_value: '7', actor: 'user:1' },
    ]);
    expect(await sale(voucherId)).toMatchObject({ units: 7, unitsVersion: 1, unitsLeft: 7, marks: 0, status: 'open' });
    expect(await stores.commands.get(`seckill:where:${voucherId}`)).toBe(String(partition));
  });

  it('agrees with the entities that describe the tables', async () => {
    const voucherId = await app.putOnSale({ stock: 5 });
    const database = app.get(Database);
    const voucher = await database.run((manager) => manager.findOneByOrFail(Voucher, { id: voucherId }));
    const seckill = await database.run((manager) => manager.findOneByOrFail(SeckillVoucher, { voucherId }));
    expect(voucher).toMatchObject({ id: voucherId, shopId: '1', payValue: '8000', type: 1, status: 1 });
    expect(seckill).toMatchObject({ voucherId, stock: 5, units: 5, unitsVersion: '1' });
    expect(seckill.beginTime).toBeInstanceOf(Date);
  });

  it('keeps every digit of ids beyond 2^53', async () => {
    await stores.sql.query("SELECT setval('sq_voucher_id', 9007199254740992)");
    const shopId = '9223372036854775807';
    const voucherId = await app.putOnSale({ shopId, stock: 2 });
    expect(voucherId).toBe('9007199254740993');
    expect((await row(voucherId))?.partition_id).toBe(1);
    expect(await see(voucherId)).toMatchObject({ voucherId, shopId, unitsLeft: 2 });
    expect((await app.buy(voucherId, '9007199254740993')).status).toBe(202);
    const list = await app.call('GET', `/v1/vouchers?shopId=${shopId}`);
    expect((list.json as { items: { voucherId: string }[] }).items.map((item) => item.voucherId)).toEqual([voucherId]);
    await stores.sql.query("SELECT setval('sq_voucher_id', 1000)");
  });

  it('takes instants, whatever zone they are written in', async () => {
    await stores.sql.query(
      'ALTER ROLE postgres IN DATABASE ' +
        new URL(stores.databaseUrl).pathname.slice(1) +
        " SET timezone TO 'America/New_York'",
    );
    const begin = Date.UTC(2026, 0, 1, 12);
    const voucherId = await app.putOnSale({
      beginTime: '2026-01-01T20:00:00+08:00',
      endTime: '2026-01-01T07:00:01-05:00',
    });
    expect(await see(voucherId)).toMatchObject({
      beginTime: '2026-01-01T12:00:00.000Z',
      endTime: '2026-01-01T12:00:01.000Z',
      status: 'ENDED',
    });
    expect(await sale(voucherId)).toMatchObject({ beginMs: begin, endMs: begin + 1_000 });
    const { rows } = await stores.sql.query<{ ms: string }>(
      'SELECT (extract(epoch FROM begin_time) * 1000)::bigint AS ms FROM tb_seckill_voucher WHERE voucher_id = $1',
      [voucherId],
    );
    expect(rows[0]?.ms).toBe(String(begin));
    const { serverTime } = (await see(voucherId)) as { serverTime: string };
    expect(Math.abs(Date.parse(serverTime) - Date.now())).toBeLessThan(60_000);
  });

  it('is stored and answered 201 while the partition is closed, and wishes for the rebuild that puts it on sale', async () => {
    const epochs = [await stores.commands.get('seckill:epoch:{0}'), await stores.commands.get('seckill:epoch:{1}')];
    await stores.commands.del('seckill:epoch:{0}', 'seckill:epoch:{1}');
    let voucherId = '';
    const wishes = await wishesOf(async () => (voucherId = await app.putOnSale()));
    expect(wishes).toEqual([{ partition: (await row(voucherId))?.partition_id, voucherId, reason: 'NOT_PUBLISHED' }]);
    expect(await see(voucherId)).toMatchObject({ unitsLeft: 3, status: 'ON_SALE' });
    expect((await app.buy(voucherId, '5')).json).toMatchObject({ code: 'UNAVAILABLE' });
    await stores.commands.mset('seckill:epoch:{0}', epochs[0] ?? '', 'seckill:epoch:{1}', epochs[1] ?? '');
  });

  it.each([
    ['no object', []],
    ['a negative stock', voucherTerms({ stock: -1 })],
    ['no stock', voucherTerms({ stock: 0 })],
    ['a broken stock', voucherTerms({ stock: 1.5 })],
    ['too much stock', voucherTerms({ stock: 10_000_001 })],
    ['a stock in quotes', voucherTerms({ stock: '5' })],
    ['a boolean value', voucherTerms({ payValue: true })],
    ['a value above the limit', voucherTerms({ payValue: 1_000_000_000_001 })],
    ['a worth of nothing', voucherTerms({ actualValue: 0 })],
    ['an empty title', voucherTerms({ title: '' })],
    ['a long title', voucherTerms({ title: 'x'.repeat(256) })],
    ['a NUL in the title', voucherTerms({ title: 'a\0b' })],
    ['half a surrogate pair', voucherTerms({ title: 'a\ud800' })],
    ['a long subTitle', voucherTerms({ subTitle: 'x'.repeat(256) })],
    ['long rules', voucherTerms({ rules: 'x'.repeat(1_025) })],
    ['null rules', voucherTerms({ rules: null })],
    ['an odd shop', voucherTerms({ shopId: '01' })],
    ['a shop that is a number', voucherTerms({ shopId: 1 })],
    ['an unknown field', voucherTerms({ unknown: 1 })],
    ['a time without zone', voucherTerms({ beginTime: '2026-01-01T00:00:00' })],
    ['no real day', voucherTerms({ beginTime: '2026-02-30T00:00:00Z' })],
    ['a begin before 1970', voucherTerms({ beginTime: '1969-12-31T23:59:59Z' })],
    [
      'an end at the begin',
      voucherTerms({ endTime: voucherTerms()['beginTime'], beginTime: voucherTerms()['beginTime'] }),
    ],
    ['an end before the begin', voucherTerms({ endTime: '2000-01-01T00:00:00Z' })],
  ])('refuses %s with 400 and stores nothing', async (_, body) => {
    const before = await stores.sql.query('SELECT count(*) FROM tb_voucher');
    const answer = await create(body);
    expect(answer.status, answer.text).toBe(400);
    expect(answer.json).toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect((await stores.sql.query('SELECT count(*) FROM tb_voucher')).rows).toEqual(before.rows);
  });

  it('accepts the limits themselves', async () => {
    const title = '券'.repeat(255);
    const answer = await create(
      voucherTerms({ title, stock: 10_000_000, payValue: 0, actualValue: 1_000_000_000_000, rules: 'r'.repeat(1_024) }),
    );
    expect(answer.status, answer.text).toBe(201);
    expect(answer.json).toMatchObject({ title, stock: 10_000_000, payValue: 0, actualValue: 1_000_000_000_000 });
  });

  it('names each bad field', async () => {
    const answer = await create(voucherTerms({ stock: 0, title: '' }));
    const { errors } = answer.json as { errors: { pointer: string }[] };
    expect(errors.map(({ pointer }) => pointer).sort()).toEqual(['/stock', '/title']);
  });
});

describe('reading vouchers', () => {
  it('lists a shop newest first in pages that do not overlap', async () => {
    const shopId = '777';
    await stores.sql.query(
      `WITH v AS (INSERT INTO tb_voucher (shop_id, title, pay_value, actual_value, type)
         SELECT 777, 'v' || n, 1, 2, 1 FROM generate_series(1, 230) n RETURNING id)
       INSERT INTO tb_seckill_voucher (voucher_id, stock, begin_time, end_time)
         SELECT id, 5, now(), now() + interval '1 hour' FROM v`,
    );
    const seen: string[] = [];
    let cursor = '';
    do {
      const page = await app.call('GET', `/v1/vouchers?shopId=${shopId}&cursor=${cursor}`);
      const { items, nextCursor } = page.json as {
        items: { voucherId: string; unitsLeft: number }[];
        nextCursor?: string;
      };
      expect(items.every(({ unitsLeft }) => unitsLeft === 5)).toBe(true);
      seen.push(...items.map(({ voucherId }) => voucherId));
      cursor = nextCursor ?? '';
    } while (cursor !== '');
    expect(seen).toHaveLength(230);
    expect(seen).toEqual([...new Set(seen)].sort((a, b) => Number(BigInt(b) - BigInt(a))));
  });

  it.each(['', '?shopId=', '?shopId=1abc', '?shopId=1&cursor=x', '?shopId=1&odd=1'])(
    'refuses the query "%s"',
    async (query) => {
      expect((await app.call('GET', `/v1/vouchers${query}`)).json).toMatchObject({ code: 'INVALID_ARGUMENT' });
    },
  );

  it('says 404 for an unknown voucher and 400 for what is no id', async () => {
    expect((await app.call('GET', '/v1/vouchers/9223372036854775807')).json).toMatchObject({
      code: 'VOUCHER_NOT_FOUND',
    });
    expect((await app.call('GET', '/v1/vouchers/07')).json).toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  it('walks the sales of a partition page by page, apart by their window', async () => {
    const reader = app.get(VoucherReader);
    const ended = await app.putOnSale({ beginTime: '2020-01-01T00:00:00Z', endTime: '2020-01-02T00:00:00Z' });
    const partition = (await row(ended))?.partition_id ?? 0;
    expect((await reader.listSales(partition, 'ENDED')).map((found) => found.voucherId)).toContain(ended);
    for (let more = 0; more < 8; more += 1) await app.putOnSale();
    const open = await reader.listSales(partition, 'OPEN', '0', 3);
    expect(open).toHaveLength(3);
    const next = await reader.listSales(partition, 'OPEN', open[2]?.voucherId, 3);
    expect(BigInt(next[0]?.voucherId ?? 0)).toBeGreaterThan(BigInt(open[2]?.voucherId ?? 0));
    expect(open.map((found) => found.voucherId)).not.toContain(ended);
  });

  it('tells known from unknown vouchers with one query for all that ask at the same time', async () => {
    const voucherId = await app.putOnSale();
    const reader = app.get(VoucherReader);
    const asked = ['8000000000000000001', voucherId, '8000000000000000002', voucherId];
    const said = await Promise.all(asked.map((id) => reader.knowsVoucher(id, 5_000)));
    expect(said.map(({ kind }) => kind)).toEqual(['UNKNOWN', 'KNOWN', 'UNKNOWN', 'KNOWN']);
  });
});

describe('changing the stock', () => {
  it('raises units and stock in both stores, once per version, and opens a sold-out sale', async () => {
    const voucherId = await app.putOnSale({ stock: 1 });
    expect((await app.buy(voucherId, '11')).status).toBe(202);
    expect((await app.buy(voucherId, '12')).json).toMatchObject({ code: 'SOLD_OUT' });
    const answer = await app.restock(voucherId, 2);
    expect(answer.status, answer.text).toBe(200);
    expect(answer.json).toMatchObject({ voucherId, stock: 3, unitsLeft: 2, status: 'ON_SALE' });
    expect(await row(voucherId)).toMatchObject({ units: 3, stock: 3, units_version: '2' });
    expect(await sale(voucherId)).toMatchObject({ units: 3, unitsVersion: 2, unitsLeft: 2, marks: 1 });
    expect((await app.buy(voucherId, '12')).status).toBe(202);
    expect((await ledger(voucherId)).at(-1)).toEqual({
      kind: 'RESTOCK',
      before_value: '1',
      after_value: '3',
      actor: 'user:1',
    });
  });

  it('withdraws free units only: in neither store more than are free', async () => {
    const voucherId = await app.putOnSale({ stock: 5 });
    for (const user of ['21', '22', '23']) expect((await app.buy(voucherId, user)).status).toBe(202);
    // Not stored yet: the database still counts 5 free, the register knows that only 2 are.
    expect(await row(voucherId)).toMatchObject({ stock: 5 });
    const refused = await app.restock(voucherId, -3);
    expect(refused.status).toBe(409);
    expect(refused.json).toMatchObject({ code: 'INSUFFICIENT_UNITS', unitsLeft: 2 });
    expect(await row(voucherId)).toMatchObject({ units: 5, stock: 5, units_version: '1' });
    expect(await sale(voucherId)).toMatchObject({ units: 5, unitsLeft: 2 });
    await stores.sql.query('UPDATE tb_seckill_voucher SET stock = 1 WHERE voucher_id = $1', [voucherId]);
    expect((await app.restock(voucherId, -2)).json).toMatchObject({ code: 'INSUFFICIENT_UNITS', unitsLeft: 1 });
    await stores.sql.query('UPDATE tb_seckill_voucher SET stock = 5 WHERE voucher_id = $1', [voucherId]);
    expect((await app.restock(voucherId, -2)).json).toMatchObject({ stock: 3, unitsLeft: 0, status: 'SOLD_OUT' });
    expect(await row(voucherId)).toMatchObject({ units: 3, stock: 3 });
    expect((await app.buy(voucherId, '24')).json).toMatchObject({ code: 'SOLD_OUT' });
  });

  it('loses no unit and gives none twice when it is raised and lowered during a rush, through two instances', async () => {
    const voucherId = await app.putOnSale({ stock: 100 });
    const work: Promise<Answer>[] = [];
    for (let user = 0; user < 300; user += 1)
      work.push((user % 2 === 0 ? app : other).buy(voucherId, String(50_000 + user)));
    const changes: Promise<Answer>[] = [];
    for (let turn = 0; turn < 10; turn += 1) {
      changes.push((turn % 2 === 0 ? app : other).restock(voucherId, 5));
      if (turn % 3 === 0) changes.push(app.restock(voucherId, -1));
    }
    const accepted = (await Promise.all(work)).filter(({ status }) => status === 202).length;
    const applied = await Promise.all(changes);
    expect(applied.filter(({ status }) => status !== 200 && status !== 409).map(({ text }) => text)).toEqual([]);
    const raised = applied.filter(({ status, json }) => status === 200 && (json as object) !== undefined).length;
    expect(raised).toBeGreaterThanOrEqual(10);
    const record = await row(voucherId);
    const live = await sale(voucherId);
    const withdrawn = applied.length - 10 - applied.filter(({ status }) => status === 409).length;
    expect(record?.units).toBe(100 + 50 - withdrawn);
    expect(live).toMatchObject({ units: record?.units, marks: accepted });
    expect(live.unitsLeft + accepted).toBe(record?.units);
    expect(live.unitsLeft).toBeGreaterThanOrEqual(0);
  });

  it('never shows less than nothing while losers come, and the buy after a restock wins', async () => {
    const voucherId = await app.putOnSale({ stock: 1 });
    expect((await app.buy(voucherId, '31')).status).toBe(202);
    const samples: number[] = [];
    const losers = Promise.all(Array.from({ length: 500 }, (_, index) => app.buy(voucherId, String(60_000 + index))));
    const key = `seckill:stock:{${(await row(voucherId))?.partition_id}}:${voucherId}`;
    for (let look = 0; look < 50; look += 1) samples.push(Number(await stores.commands.get(key)));
    expect((await losers).map(({ json }) => (json as { code: string }).code)).toEqual(Array(500).fill('SOLD_OUT'));
    expect(Math.min(...samples)).toBe(0);
    await app.restock(voucherId, 1);
    expect((await other.buy(voucherId, '32')).status).toBe(202);
  });

  it.each([0, 1.5, '5', null, 10_000_001])('refuses a delta of %j', async (delta) => {
    const voucherId = await app.putOnSale();
    const answer = await app.call('PATCH', `/v1/vouchers/${voucherId}/stock`, { as: ADMIN, body: { delta } });
    expect(answer.json).toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(await row(voucherId)).toMatchObject({ units: 3, units_version: '1' });
  });

  it('refuses to offer more than the limit, and changes nothing for an unknown voucher or without the role', async () => {
    const voucherId = await app.putOnSale();
    expect((await app.restock(voucherId, 9_999_999)).json).toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(await row(voucherId)).toMatchObject({ units: 3 });
    expect((await app.restock('9223372036854775807', 1)).json).toMatchObject({ code: 'VOUCHER_NOT_FOUND' });
    expect((await app.restock('9223372036854775807', -1)).json).toMatchObject({ code: 'VOUCHER_NOT_FOUND' });
    const path = `/v1/vouchers/${voucherId}/stock`;
    expect((await app.call('PATCH', path, { as: tokenOf('7'), body: { delta: 1 } })).json).toMatchObject({
      code: 'FORBIDDEN',
    });
    expect((await app.call('PATCH', path, { body: { delta: 1 } })).json).toMatchObject({ code: 'UNAUTHENTICATED' });
  });

  it('lets an increase stand while the register lacks the sale, and refuses a decrease without effect', async () => {
    const voucherId = await app.putOnSale();
    const partition = (await row(voucherId))?.partition_id ?? 0;
    await stores.commands.del(`seckill:sale:{${partition}}:${voucherId}`, `seckill:stock:{${partition}}:${voucherId}`);
    const wishes = await wishesOf(async () => {
      expect((await app.restock(voucherId, 4)).json).toMatchObject({ stock: 7, unitsLeft: 7 });
      expect((await app.restock(voucherId, -1)).json).toMatchObject({ code: 'UNAVAILABLE' });
    });
    expect(wishes).toEqual([
      { partition, voucherId, reason: 'NOT_PUBLISHED' },
      { partition, voucherId, reason: 'NOT_PUBLISHED' },
    ]);
    expect(await row(voucherId)).toMatchObject({ units: 7, stock: 7, units_version: '2' });
  });
});

describe('a change of units that was cut in half', () => {
  const half = async (voucherId: string, units: number, unitsVersion: number) =>
    app.get(SaleRegister).restock((await row(voucherId))?.partition_id ?? 0, { voucherId, units, unitsVersion });

  it('a decrease that was never committed has one effect when it is repeated', async () => {
    const voucherId = await app.putOnSale({ stock: 10 });
    await half(voucherId, 7, 2);
    expect((await app.restock(voucherId, -3)).json).toMatchObject({ stock: 7, unitsLeft: 7 });
    expect(await row(voucherId)).toMatchObject({ units: 7, stock: 7, units_version: '2' });
  });

  it.each([
    ['increase', 5, 15],
    ['decrease', -2, 8],
  ])('a decrease that was never committed is undone by the next %s', async (_, delta, units) => {
    const voucherId = await app.putOnSale({ stock: 10 });
    await half(voucherId, 7, 2);
    expect((await app.restock(voucherId, delta)).status).toBe(200);
    expect(await row(voucherId)).toMatchObject({ units, stock: units });
    expect(await sale(voucherId)).toMatchObject({
      units,
      unitsLeft: units,
      unitsVersion: Number((await row(voucherId))?.units_version),
    });
  });

  it.each([
    ['increase', 1, 13],
    ['decrease', -2, 10],
  ])('an increase whose commit the database lost wins over the record at the next %s', async (_, delta, units) => {
    const voucherId = await app.putOnSale({ stock: 10 });
    await half(voucherId, 12, 2);
    expect((await app.restock(voucherId, delta)).status).toBe(200);
    const record = await row(voucherId);
    expect(record).toMatchObject({ units: delta > 0 ? 12 : units, stock: delta > 0 ? 12 : units });
    expect(await sale(voucherId)).toMatchObject({ units: record?.units, unitsLeft: record?.units });
  });

  it('settling brings both stores together, and twice is once', async () => {
    const voucherId = await app.putOnSale({ stock: 10 });
    await half(voucherId, 7, 5);
    const changes = app.get(StockChangeService);
    for (let turn = 0; turn < 2; turn += 1) {
      const record = await app.get(VoucherReader).findSale(voucherId);
      if (record === undefined) throw new Error('the sale has vanished');
      await changes.settle(record, 'tests');
    }
    expect(await row(voucherId)).toMatchObject({ units: 10, stock: 10, units_version: '6' });
    expect(await sale(voucherId)).toMatchObject({ units: 10, unitsLeft: 10, unitsVersion: 6 });
  });
});

describe('Idempotency-Key', () => {
  let next = 0;
  const key = (): Record<string, string> => ({ 'idempotency-key': `key-${(next += 1)}` });

  it('gives one voucher and the same answer to a repeated call, from any instance', async () => {
    const named = key();
    const body = voucherTerms();
    const first = await create(body, named);
    const again = await create(body, named, other);
    expect([first.status, again.status]).toEqual([201, 201]);
    expect(again.text).toBe(first.text);
    expect(first.headers['idempotency-replayed']).toBeUndefined();
    expect(again.headers['idempotency-replayed']).toBe('true');
  });

  it('has one effect when the same call comes many times at once', async () => {
    const named = key();
    const body = voucherTerms({ shopId: '4711' });
    const made = await Promise.all(
      Array.from({ length: 10 }, (_, turn) => create(body, named, turn % 2 === 0 ? app : other)),
    );
    expect(new Set(made.map(({ text }) => text)).size).toBe(1);
    const { rowCount } = await stores.sql.query('SELECT 1 FROM tb_voucher WHERE shop_id = 4711');
    expect(rowCount).toBe(1);
    const { voucherId } = made[0]?.json as { voucherId: string };
    for (const delta of [4, -2]) {
      const change = key();
      const changed = await Promise.all(
        Array.from({ length: 10 }, (_, turn) => (turn % 2 === 0 ? app : other).restock(voucherId, delta, change)),
      );
      expect(new Set(changed.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    }
    expect(await row(voucherId)).toMatchObject({ units: 5, stock: 5, units_version: '3' });
    expect(await sale(voucherId)).toMatchObject({ units: 5, unitsLeft: 5 });
  });

  it('repeats a refusal as well: no free unit then, none for this key later', async () => {
    const voucherId = await app.putOnSale({ stock: 1 });
    const named = key();
    expect((await app.restock(voucherId, -2, named)).json).toMatchObject({ code: 'INSUFFICIENT_UNITS', unitsLeft: 1 });
    await app.restock(voucherId, 5);
    expect((await app.restock(voucherId, -2, named)).json).toMatchObject({ code: 'INSUFFICIENT_UNITS', unitsLeft: 1 });
    expect(await row(voucherId)).toMatchObject({ units: 6 });
  });

  it('applies the units, and has a missing sale rebuilt, where the first call ended between the two stores', async () => {
    const named = key();
    const body = voucherTerms();
    const voucherId = voucherIdOf(await create(body, named));
    const change = key();
    await app.restock(voucherId, 2, change);
    const partition = (await row(voucherId))?.partition_id ?? 0;
    // As if the process had died right after its COMMIT: first of the restock, then of the creation.
    await stores.commands.hset(`seckill:sale:{${partition}}:${voucherId}`, 'units', 3, 'unitsVersion', 1);
    await stores.commands.set(`seckill:stock:{${partition}}:${voucherId}`, 3);
    expect((await app.restock(voucherId, 2, change)).status).toBe(200);
    expect(await sale(voucherId)).toMatchObject({ units: 5, unitsLeft: 5, unitsVersion: 2 });
    await stores.commands.del(
      `seckill:sale:{${partition}}:${voucherId}`,
      `seckill:stock:{${partition}}:${voucherId}`,
      `seckill:where:${voucherId}`,
    );
    // By then it may have been sold: full units must not be published again, the rebuild counts what is left.
    const asked: RebuildRequest[] = [];
    const stop = app.get(EpochRegister).onRebuildRequested((request) => asked.push(request));
    expect((await create(body, named)).status).toBe(201);
    stop();
    expect(asked).toEqual([{ partition, voucherId, reason: 'NOT_PUBLISHED' }]);
    expect(await stores.commands.exists(`seckill:stock:{${partition}}:${voucherId}`)).toBe(0);
  });

  it('is refused with 422 for another body, another call and another voucher; another caller has keys of his own', async () => {
    const named = key();
    const body = voucherTerms();
    const voucherId = voucherIdOf(await create(body, named));
    expect((await create({ ...body, title: 'other' }, named)).json).toMatchObject({
      code: 'IDEMPOTENCY_KEY_REUSED',
      status: 422,
    });
    expect((await app.restock(voucherId, 1, named)).json).toMatchObject({ code: 'IDEMPOTENCY_KEY_REUSED' });
    const change = key();
    expect((await app.restock(voucherId, 1, change)).status).toBe(200);
    expect((await app.restock(voucherId, 2, change)).json).toMatchObject({ code: 'IDEMPOTENCY_KEY_REUSED' });
    expect((await app.restock(await app.putOnSale(), 1, change)).json).toMatchObject({
      code: 'IDEMPOTENCY_KEY_REUSED',
    });
    const stranger = await app.call('POST', '/v1/vouchers', {
      as: tokenOf('2', 'admin'),
      body: { ...body, title: 'his' },
      headers: named,
    });
    expect(stranger.status).toBe(201);
    expect(await row(voucherId)).toMatchObject({ units: 4 });
  });

  it('stands for a call whose times were computed anew from the clock, not for one with other times', async () => {
    const named = key();
    const at = Date.now();
    const from = (ms: number): Record<string, unknown> =>
      voucherTerms({ beginTime: new Date(at + ms).toISOString(), endTime: new Date(at + ms + 60_000).toISOString() });
    const first = await create(from(0), named);
    expect((await create(from(25), named)).text).toBe(first.text);
    expect((await create(from(30_000), named)).json).toMatchObject({ code: 'IDEMPOTENCY_KEY_REUSED' });
    expect((await create(from(-30_000), named)).json).toMatchObject({ code: 'IDEMPOTENCY_KEY_REUSED' });
  });

  it('stands for its call for a day, then for a new one; a call that failed leaves it free', async () => {
    const named = key();
    const body = voucherTerms();
    expect((await create({ ...body, stock: 0 }, named)).status).toBe(400);
    const first = await create(body, named);
    expect(first.status).toBe(201);
    await stores.sql.query("UPDATE tb_idempotency_key SET create_time = now() - interval '25 hours'");
    const later = await create({ ...body, title: 'a day later' }, named);
    expect(later.status).toBe(201);
    expect((later.json as { voucherId: string }).voucherId).not.toBe((first.json as { voucherId: string }).voucherId);
  });

  it.each(['', 'x'.repeat(256), 'two words', 'ümlaut'])('refuses the key "%s"', async (bad) => {
    const answer = await create(voucherTerms(), { 'idempotency-key': bad });
    expect(answer.json).toMatchObject({ code: 'INVALID_ARGUMENT', errors: [{ header: 'Idempotency-Key' }] });
  });
});
