import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { DrainFixture, purchases } from '../../../test/support/drain-fixture.js';
import { DeadLetterService } from './dead-letter.service.js';
import { type DeadLetterKey, parseLetterId } from './dead-letter.view.js';
import { DeadLettersModule } from './dead-letters.module.js';

const ACTOR = 'user:1';
let drain: DrainFixture;
let nextVoucher = 500;

beforeAll(async () => {
  drain = await DrainFixture.start({}, [DeadLettersModule]);
});
afterAll(async () => {
  await drain.destroy();
});
afterEach(async () => {
  vi.restoreAllMocks();
  for (const letter of await drain.log.listDeadLetters(0, 1_000)) await drain.log.removeDeadLetter(0, letter.id);
});

const service = () => drain.get(DeadLetterService);

async function onlyKey(): Promise<DeadLetterKey> {
  const { items } = await service().list(10);
  const key = parseLetterId(items[0]?.id);
  if (items.length !== 1 || key === undefined) throw new Error(`${items.length} letters`);
  return key;
}

/** One order that was bought, and dead-lettered because its voucher's row was gone; the row is back. */
async function letterOfBoughtOrder(): Promise<{
  voucherId: string;
  userId: string;
  orderId: string;
  key: DeadLetterKey;
}> {
  nextVoucher += 1;
  const voucherId = String(nextVoucher);
  await drain.sale(voucherId, 5);
  const [purchase] = purchases(1, nextVoucher * 100);
  if (purchase === undefined) throw new Error('no purchase');
  await drain.buy(voucherId, [purchase]);
  await drain.sql.query(
    'CREATE TEMP TABLE saved AS SELECT * FROM tb_seckill_voucher WHERE voucher_id = $1'.replace('$1', voucherId),
  );
  await drain.sql.query('DELETE FROM tb_seckill_voucher WHERE voucher_id = $1', [voucherId]);
  expect(await drain.consumer.runOnce(0)).toMatchObject({ deadLettered: 1, acknowledged: 0 });
  await drain.sql.query('INSERT INTO tb_seckill_voucher SELECT * FROM saved; DROP TABLE saved');
  return { voucherId, ...purchase, key: await onlyKey() };
}

const untouched = { rows: 0, rejected: 0, databaseStock: 5, unitsLeft: 4, marks: 1 };
const stored = { rows: 1, rejected: 0, databaseStock: 4, unitsLeft: 4, marks: 1 };
const givenUp = { rows: 0, rejected: 1, databaseStock: 5, unitsLeft: 5, marks: 0 };

describe('redrive', () => {
  it('completes the order once; a second one finds no letter and changes nothing', async () => {
    const { voucherId, key } = await letterOfBoughtOrder();
    expect(await drain.facts(voucherId)).toEqual(untouched);
    expect(await service().redrive(key, ACTOR)).toBe('REDRIVEN');
    expect(await service().redrive(key, ACTOR)).toBe('NOT_FOUND');
    await drain.consumer.runOnce(0);
    expect(await drain.facts(voucherId)).toEqual(stored);
    expect(await drain.pending()).toBe(0);
    expect((await service().list(10)).items).toEqual([]);
  });

  it('raced by others and by discards has one effect, and the unit is neither lost nor given twice', async () => {
    for (let round = 0; round < 8; round += 1) {
      const { voucherId, key } = await letterOfBoughtOrder();
      const outcomes = await Promise.all(
        [1, 2].flatMap(() => [service().redrive(key, ACTOR), service().discard(key, ACTOR)] as Promise<string>[]),
      );
      expect(outcomes.filter((outcome) => outcome === 'REDRIVEN').length).toBeLessThanOrEqual(1);
      await drain.consumer.runOnce(0);
      await drain.consumer.runOnce(0);
      expect([stored, givenUp]).toContainEqual(await drain.facts(voucherId));
      expect((await service().list(10)).items).toEqual([]);
      expect(await drain.pending()).toBe(0);
    }
  });

  it('of an order that was stored meanwhile only takes the letter off the list', async () => {
    const { voucherId, userId, orderId, key } = await letterOfBoughtOrder();
    await drain.sql.query('INSERT INTO tb_voucher_order (id, user_id, voucher_id) VALUES ($1, $2, $3)', [
      orderId,
      userId,
      voucherId,
    ]);
    expect(await service().redrive(key, ACTOR)).toBe('ALREADY_STORED');
    expect(await drain.length()).toBe(0);
    expect(await drain.facts(voucherId)).toMatchObject({ rows: 1, unitsLeft: 4, marks: 1 });
    expect((await service().list(10)).items).toEqual([]);
  });

  it('of an order that was rejected meanwhile finishes its release and takes the letter off the list', async () => {
    const { voucherId, userId, orderId, key } = await letterOfBoughtOrder();
    await drain.orders.rejectOrder(0, { orderId, userId, voucherId }, 'DISCARDED', 'interrupted');
    expect(await service().redrive(key, ACTOR)).toBe('ALREADY_REJECTED');
    expect(await drain.facts(voucherId)).toEqual(givenUp);
  });

  it('is refused, and the letter stands, where no mark holds the order, and where the fields are no order', async () => {
    await drain.redis.xadd(drain.stream, '*', 'userId', '7', 'voucherId', '404404', 'id', '75');
    await drain.consumer.runOnce(0);
    expect(await service().redrive(await onlyKey(), ACTOR)).toBe('NOT_REDRIVABLE');
    await service().discard(await onlyKey(), ACTOR);
    await drain.redis.xadd(drain.stream, '*', 'userId', 'abc', 'voucherId', '1', 'id', '76');
    await drain.consumer.runOnce(0);
    expect(await service().redrive(await onlyKey(), ACTOR)).toBe('NOT_REDRIVABLE');
    expect(await drain.length()).toBe(0);
  });
});

describe('discard', () => {
  it('records the rejection, gives the unit back once, removes the letter; the buyer may buy again', async () => {
    const { voucherId, userId, orderId, key } = await letterOfBoughtOrder();
    expect(await service().discard(key, ACTOR)).toBe('DISCARDED');
    expect(await service().discard(key, ACTOR)).toBe('NOT_FOUND');
    expect(await drain.facts(voucherId)).toEqual(givenUp);
    expect(await drain.reader.findOrder(orderId)).toMatchObject({ status: 'REJECTED', reason: 'DISCARDED' });
    const releases = (await drain.ledger.list(voucherId)).filter(({ kind }) => kind === 'RELEASE');
    expect(releases).toMatchObject([{ orderId, actor: ACTOR }]);
    await drain.buy(voucherId, [{ userId, orderId: '99999' }]);
    await drain.consumer.runOnce(0);
    expect(await drain.facts(voucherId)).toMatchObject({ rows: 1, rejected: 1, unitsLeft: 4, marks: 1 });
  });

  it.each(['release', 'removal'] as const)('interrupted before the %s is finished by the next one', async (where) => {
    const { voucherId, key } = await letterOfBoughtOrder();
    const broken =
      where === 'release'
        ? vi.spyOn(drain.register, 'release').mockRejectedValueOnce(new Error('cut'))
        : vi.spyOn(drain.log, 'removeDeadLetter').mockRejectedValueOnce(new Error('cut'));
    await expect(service().discard(key, ACTOR)).rejects.toThrow('cut');
    expect(broken).toHaveBeenCalledTimes(1);
    expect(await drain.facts(voucherId)).toMatchObject({ rejected: 1 });
    expect(await service().discard(key, ACTOR)).toBe('DISCARDED');
    expect(await drain.facts(voucherId)).toEqual(givenUp);
    expect((await service().list(10)).items).toEqual([]);
  });

  it('gives nothing back before the rejection is recorded', async () => {
    const { voucherId, key } = await letterOfBoughtOrder();
    vi.spyOn(drain.orders, 'rejectOrder').mockRejectedValueOnce(new Error('away'));
    await expect(service().discard(key, ACTOR)).rejects.toThrow('away');
    expect(await drain.facts(voucherId)).toEqual(untouched);
    expect((await service().list(10)).items).toHaveLength(1);
  });

  it('of a stored order only takes the letter off the list', async () => {
    const { voucherId, userId, orderId, key } = await letterOfBoughtOrder();
    await drain.sql.query('INSERT INTO tb_voucher_order (id, user_id, voucher_id) VALUES ($1, $2, $3)', [
      orderId,
      userId,
      voucherId,
    ]);
    expect(await service().discard(key, ACTOR)).toBe('ALREADY_STORED');
    expect(await drain.facts(voucherId)).toMatchObject({ rows: 1, rejected: 0, unitsLeft: 4, marks: 1 });
  });

  it('of an id that belongs to another order leaves that order alone, and releases only a mark that holds the id', async () => {
    const { voucherId, orderId, key } = await letterOfBoughtOrder();
    await drain.sql.query('INSERT INTO tb_voucher_order (id, user_id, voucher_id) VALUES ($1, 31337, $2)', [
      orderId,
      voucherId,
    ]);
    expect(await service().redrive(key, ACTOR)).toBe('NOT_REDRIVABLE');
    expect(await service().discard(key, ACTOR)).toBe('DISCARDED');
    expect(await drain.facts(voucherId)).toMatchObject({ rows: 1, rejected: 0, unitsLeft: 5, marks: 0 });
    expect(await drain.reader.findOrder(orderId)).toMatchObject({ userId: '31337', status: 'UNPAID' });
  });

  it('of fields that are no order touches no sale', async () => {
    await drain.redis.xadd(drain.stream, '*', 'userId', 'abc', 'voucherId', '77', 'id', '76');
    await drain.consumer.runOnce(0);
    expect(await service().discard(await onlyKey(), ACTOR)).toBe('DISCARDED');
    expect((await drain.ledger.list('77')).map(({ actor }) => actor)).toEqual([ACTOR]);
    expect((await service().list(10)).items).toEqual([]);
  });
});

describe('the list', () => {
  it('shows every letter once, over all partitions that were ever registered, page by page', async () => {
    await drain.orders.registerPartition(3);
    for (const partition of [0, 3]) {
      for (let entry = 0; entry < 3; entry += 1) {
        await drain.redis.xadd(drain.keys.stream(partition), '*', 'nonsense', `${partition}/${entry}`);
      }
    }
    await drain.consumer.runOnce();
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await service().list(2, parseLetterId(cursor));
      expect(page.items.length).toBeLessThanOrEqual(2);
      seen.push(...page.items.map(({ fields }) => fields['nonsense'] ?? ''));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    expect(seen).toEqual(['0/0', '0/1', '0/2', '3/0', '3/1', '3/2']);
    const [first] = (await service().list(1)).items;
    expect(first).toMatchObject({ partition: 0, fields: { nonsense: '0/0' }, deliveries: 1 });
    expect(first?.id).toMatch(/^0-\d+-\d+$/);
    expect(first?.cause).toMatch(/^MALFORMED: /);
    expect(new Date(first?.firstSeenTime ?? '').toISOString()).toBe(first?.firstSeenTime);
    for (const letter of await drain.log.listDeadLetters(3, 10)) await drain.log.removeDeadLetter(3, letter.id);
  });
});
