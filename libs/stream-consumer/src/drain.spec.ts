import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { DrainFixture, purchases } from '../../../test/support/drain-fixture.js';

let drain: DrainFixture;
let nextVoucher = 100;

beforeAll(async () => {
  drain = await DrainFixture.start();
});
afterAll(async () => {
  await drain.destroy();
});
afterEach(async () => {
  // Each test leaves the stores as it found them, also where it failed.
  await drain.redis.call('ACL', 'SETUSER', 'default', '+@all');
  await drain.redis.xgroup('DESTROY', drain.stream, 'witness').catch(() => 0);
  await drain.letPendingAge();
  await drain.consumer.runOnce(0);
  await clearLetters();
});

/** A voucher on sale, its first buyers with orders in the stream. */
async function saleWith(units: number, buyers: number): Promise<string> {
  nextVoucher += 1;
  const voucherId = String(nextVoucher);
  await drain.sale(voucherId, units);
  await drain.buy(voucherId, purchases(buyers, nextVoucher * 10_000));
  return voucherId;
}

/** How many transactions wrote the voucher's orders. */
async function transactions(voucherId: string): Promise<number> {
  const { rows } = await drain.sql.query<{ count: number }>(
    'SELECT count(DISTINCT xmin::text)::int AS count FROM tb_voucher_order WHERE voucher_id = $1',
    [voucherId],
  );
  return rows[0]?.count ?? 0;
}

async function settle(): Promise<void> {
  await drain.consumer.runOnce(0);
  expect(await drain.pending()).toBe(0);
}

describe('a batch', () => {
  it('creates the group by itself, stores what waited before the first start, and empties the stream', async () => {
    const voucherId = await saleWith(20, 20);
    expect(await drain.consumer.runOnce(0)).toMatchObject({ read: 20, stored: 20, acknowledged: 20 });
    expect(await drain.facts(voucherId)).toEqual({ rows: 20, rejected: 0, databaseStock: 0, unitsLeft: 0, marks: 20 });
    expect([await drain.pending(), await drain.length()]).toEqual([0, 0]);
  });

  it('of 1,000 entries is one transaction', async () => {
    const voucherId = await saleWith(1_000, 1_000);
    expect(await drain.consumer.runOnce(0)).toMatchObject({ read: 1_000, stored: 1_000, acknowledged: 1_000 });
    expect(await transactions(voucherId)).toBe(1);
  });

  it('keeps the ids as they were accepted, up to the greatest ones', async () => {
    const voucherId = '9223372036854775806';
    await drain.sale(voucherId, 3);
    await drain.buy(voucherId, [
      { userId: '9007199254740993', orderId: '9223372036854775807' },
      { userId: '9007199254740992', orderId: '9007199254740993' },
    ]);
    await settle();
    const { rows } = await drain.sql.query<{ id: string; user_id: string }>(
      'SELECT id::text, user_id::text FROM tb_voucher_order WHERE voucher_id = $1 ORDER BY id DESC',
      [voucherId],
    );
    expect(rows).toEqual([
      { id: '9223372036854775807', user_id: '9007199254740993' },
      { id: '9007199254740993', user_id: '9007199254740992' },
    ]);
  });
});

describe('handling an entry again', () => {
  it('changes nothing, in any order and any number of times', async () => {
    // A group that reads nothing keeps every entry in the stream, to be replayed.
    await drain.log.ensureGroup(0);
    await drain.redis.xgroup('CREATE', drain.stream, 'witness', '0');
    const voucherId = await saleWith(1_000_000, 0);
    let bought = 0;
    const step = fc.oneof(
      fc.record({ kind: fc.constant('buy' as const), count: fc.integer({ min: 1, max: 20 }) }),
      fc.record({ kind: fc.constant('replay' as const) }),
      fc.record({ kind: fc.constant('drain' as const) }),
      fc.record({ kind: fc.constant('ghost' as const) }),
      fc.record({ kind: fc.constant('regroup' as const) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
        for (const each of steps) {
          if (each.kind === 'buy') {
            await drain.buy(voucherId, purchases(each.count, nextVoucher * 10_000 + bought));
            bought += each.count;
          } else if (each.kind === 'replay') await drain.replay();
          else if (each.kind === 'ghost') await drain.ghostReads(`ghost-${bought}`);
          else if (each.kind === 'regroup') await drain.redis.xgroup('DESTROY', drain.stream, drain.group);
          else await drain.consumer.runOnce(0);
        }
        let counts = await drain.consumer.runOnce(0);
        while (counts.read > 0) counts = await drain.consumer.runOnce(0);
        expect(await drain.facts(voucherId)).toEqual({
          rows: bought,
          rejected: 0,
          databaseStock: 1_000_000 - bought,
          unitsLeft: 1_000_000 - bought,
          marks: bought,
        });
        expect(await drain.pending()).toBe(0);
        expect((await drain.log.stats(0)).deadLetters).toBe(0);
      }),
      { numRuns: 15 },
    );
    await drain.redis.xgroup('DESTROY', drain.stream, 'witness');
    await drain.buy(voucherId, purchases(1, 1));
    await settle();
    expect(await drain.length()).toBe(0);
  });

  it('acknowledges later what was stored while the acknowledgement was refused, and stores it once', async () => {
    const voucherId = await saleWith(20, 20);
    await drain.redis.call('ACL', 'SETUSER', 'default', '-xack');
    expect(await drain.consumer.runOnce(0)).toMatchObject({ stored: 20, acknowledged: 0 });
    expect(drain.consumer.status().consumers[0]).toMatchObject({ unsettled: 20 });
    expect(drain.consumer.status().consumers[0]?.lastError).toMatch(/lacks a right/);
    const more = purchases(5, 900);
    await drain.sql.query('UPDATE tb_seckill_voucher SET stock = stock + 5, units = units + 5 WHERE voucher_id = $1', [
      voucherId,
    ]);
    await drain.register.restock(0, { voucherId, units: 25, unitsVersion: 2 });
    await drain.buy(voucherId, more);
    expect(await drain.consumer.runOnce(0)).toMatchObject({ stored: 5, alreadySettled: 0 });
    expect(await drain.pending()).toBe(25);
    await drain.redis.call('ACL', 'SETUSER', 'default', '+xack');
    expect(await drain.consumer.runOnce(0)).toMatchObject({ stored: 0, acknowledged: 25 });
    expect(await drain.pending()).toBe(0);
    expect(await drain.facts(voucherId)).toEqual({ rows: 25, rejected: 0, databaseStock: 0, unitsLeft: 0, marks: 25 });
  });

  it('after a death between commit and acknowledgement changes nothing: another process finds the orders stored', async () => {
    const voucherId = await saleWith(20, 20);
    const dying = await drain.process();
    await drain.redis.call('ACL', 'SETUSER', 'default', '-xack');
    const { StreamConsumer } = await import('./index.js');
    expect(await dying.get(StreamConsumer).runOnce(0)).toMatchObject({ stored: 20 });
    await drain.end(dying);
    await drain.redis.call('ACL', 'SETUSER', 'default', '+xack');
    await drain.letPendingAge();
    expect(await drain.consumer.runOnce(0)).toMatchObject({ stored: 0, alreadySettled: 20, acknowledged: 20 });
    expect(await drain.facts(voucherId)).toEqual({ rows: 20, rejected: 0, databaseStock: 0, unitsLeft: 0, marks: 20 });
  });

  it('rejected before stays rejected, and its unit is given back once', async () => {
    const voucherId = await saleWith(5, 3);
    await drain.redis.xgroup('CREATE', drain.stream, 'witness', '0');
    await drain.sql.query('UPDATE tb_seckill_voucher SET stock = 0 WHERE voucher_id = $1', [voucherId]);
    expect(await drain.consumer.runOnce(0)).toMatchObject({ rejected: 3, acknowledged: 3 });
    await drain.sql.query('UPDATE tb_seckill_voucher SET stock = 5 WHERE voucher_id = $1', [voucherId]);
    await drain.replay();
    expect(await drain.consumer.runOnce(0)).toMatchObject({ stored: 0, rejected: 3, acknowledged: 3 });
    expect(await drain.facts(voucherId)).toEqual({ rows: 0, rejected: 3, databaseStock: 5, unitsLeft: 5, marks: 0 });
    expect((await drain.ledger.list(voucherId)).filter(({ kind }) => kind === 'RELEASE')).toHaveLength(3);
  });
});

describe('what a dead or silent consumer holds', () => {
  it('is finished by a living one, wherever it stands in the pending list', async () => {
    const voucherId = await saleWith(2_500, 2_500);
    expect(await drain.ghostReads('ghost')).toHaveLength(2_500);
    expect(await drain.consumer.runOnce(0)).toMatchObject({ read: 2_500, stored: 2_500, acknowledged: 2_500 });
    expect((await drain.facts(voucherId)).rows).toBe(2_500);
    expect((await drain.log.stats(0)).consumers.find(({ name }) => name === 'ghost')).toMatchObject({ pending: 0 });
  });

  it('is left alone while it is not silent for long enough', async () => {
    const voucherId = await saleWith(5, 5);
    await drain.ghostReads('busy', 0);
    expect(await drain.consumer.runOnce(0)).toMatchObject({ read: 0 });
    expect((await drain.facts(voucherId)).rows).toBe(0);
    await drain.letPendingAge();
    await settle();
    expect((await drain.facts(voucherId)).rows).toBe(5);
  });

  it('is read again at the start by the process that has the same name, without new traffic', async () => {
    const voucherId = await saleWith(20, 20);
    await drain.ghostReads('fixed-name', 0);
    const restarted = await drain.process({ name: 'fixed-name' });
    const { StreamConsumer } = await import('./index.js');
    expect(await restarted.get(StreamConsumer).runOnce(0)).toMatchObject({ read: 20, stored: 20 });
    await drain.end(restarted);
    expect((await drain.facts(voucherId)).rows).toBe(20);
  });

  it('is tried alone, after the others, when it was handed out too often; the count ends no order', async () => {
    const voucherId = await saleWith(10, 10);
    const ids = await drain.ghostReads('dying');
    await drain.redis.xclaim(
      drain.stream,
      drain.group,
      'dying',
      0,
      ...ids.slice(0, 3),
      'RETRYCOUNT',
      99,
      'IDLE',
      3_600_000,
    );
    expect(await drain.consumer.runOnce(0)).toMatchObject({ stored: 10, rejected: 0, deadLettered: 0 });
    // Seven in company, three alone.
    expect(await transactions(voucherId)).toBe(4);
  });

  it('whose entries are gone is reported and acknowledged, and the others are stored', async () => {
    const voucherId = await saleWith(3, 3);
    const ids = await drain.ghostReads('ghost');
    await drain.redis.xdel(drain.stream, ids[1] as string);
    expect(await drain.consumer.runOnce(0)).toMatchObject({ stored: 2, vanished: 1 });
    expect(await drain.pending()).toBe(0);
    const { rows, marks, unitsLeft } = await drain.facts(voucherId);
    expect({ rows, marks, unitsLeft }).toEqual({ rows: 2, marks: 3, unitsLeft: 0 });
  });
});

describe('an entry that is no order', () => {
  it('becomes a dead letter with its fields and cause, and delays no good one', async () => {
    const voucherId = await saleWith(50, 0);
    const bad: [string[], RegExp][] = [
      [['voucherId', voucherId, 'id', '71'], /MALFORMED.*userId/],
      [['userId', 'abc', 'voucherId', voucherId, 'id', '72'], /MALFORMED.*userId/],
      [['userId', '7', 'voucherId', voucherId, 'Id', '73'], /MALFORMED.*id/],
      [['userId', '7', 'voucherId', '', 'id', '74'], /MALFORMED.*voucherId/],
      [['userId', '7', 'voucherId', voucherId, 'id', '9'.repeat(40)], /MALFORMED.*id/],
      [['userId', '7', 'voucherId', '4040404', 'id', '75'], /UNKNOWN_VOUCHER/],
      [['nonsense', 'x'], /MALFORMED/],
    ];
    for (const [fields] of bad) await drain.redis.xadd(drain.stream, '*', ...fields);
    await drain.ghostReads('ghost');
    for (const [fields] of bad) await drain.redis.xadd(drain.stream, '*', ...fields);
    await drain.buy(voucherId, purchases(49, 200));
    const extra = ['userId', '7', 'voucherId', voucherId, 'id', '76', 'traceparent', '00-x'];
    await drain.redis.xadd(drain.stream, '*', ...extra);
    expect(await drain.consumer.runOnce(0)).toMatchObject({ stored: 50, deadLettered: 14 });
    const letters = await drain.log.listDeadLetters(0, 100);
    expect(letters).toHaveLength(14);
    for (const [fields, cause] of bad) {
      const twins = letters.filter(
        (letter) => JSON.stringify(Object.entries(letter.fields).flat()) === JSON.stringify(fields),
      );
      expect(twins.map((letter) => letter.cause)).toEqual([expect.stringMatching(cause), expect.stringMatching(cause)]);
      expect(twins.map((letter) => letter.deliveries).sort()).toEqual([1, 2]);
    }
    expect([await drain.pending(), await drain.length()]).toEqual([0, 0]);
    expect(await drain.consumer.runOnce(0)).toMatchObject({ read: 0, deadLettered: 0 });
  });

  it('with the id of another buyer’s order leaves that order as it is', async () => {
    const voucherId = await saleWith(5, 1);
    await settle();
    const { rows } = await drain.sql.query<{ id: string }>('SELECT id FROM tb_voucher_order WHERE voucher_id = $1', [
      voucherId,
    ]);
    const id = rows[0]?.id ?? '';
    await drain.redis.xadd(drain.stream, '*', 'userId', '31337', 'voucherId', voucherId, 'id', id);
    expect(await drain.consumer.runOnce(0)).toMatchObject({ stored: 0, deadLettered: 1 });
    expect((await drain.log.listDeadLetters(0, 10))[0]?.cause).toMatch(/^FOREIGN_ID/);
    expect(await drain.facts(voucherId)).toEqual({ rows: 1, rejected: 0, databaseStock: 4, unitsLeft: 4, marks: 1 });
  });

  it('is written once into the dead letters although its acknowledgement was refused for a while', async () => {
    await drain.redis.xadd(drain.stream, '*', 'nonsense', 'x');
    await drain.redis.call('ACL', 'SETUSER', 'default', '-xack');
    for (let sweep = 0; sweep < 3; sweep += 1) {
      expect(await drain.consumer.runOnce(0)).toMatchObject({ deadLettered: 0 });
      await drain.letPendingAge();
    }
    expect(await drain.pending()).toBe(1);
    expect(await drain.log.listDeadLetters(0, 10)).toEqual([]);
    await drain.redis.call('ACL', 'SETUSER', 'default', '+xack');
    expect(await drain.consumer.runOnce(0)).toMatchObject({ deadLettered: 1 });
    expect(await drain.log.listDeadLetters(0, 10)).toHaveLength(1);
    expect(await drain.pending()).toBe(0);
  });
});

describe('an order that the database refuses', () => {
  it('for want of units is recorded as rejected and released once', async () => {
    const voucherId = await saleWith(5, 3);
    await drain.sql.query('UPDATE tb_seckill_voucher SET stock = 0 WHERE voucher_id = $1', [voucherId]);
    expect(await drain.consumer.runOnce(0)).toMatchObject({ stored: 0, rejected: 3, acknowledged: 3 });
    const first = await drain.reader.findOrder(String(1_000_000 + nextVoucher * 10_000));
    expect(first).toMatchObject({ status: 'REJECTED', reason: 'NO_UNITS' });
    expect(await drain.facts(voucherId)).toMatchObject({ rows: 0, rejected: 3, unitsLeft: 5, marks: 0 });
  });

  it('because its buyer has another one gives no unit back: the mark passes to the other order', async () => {
    const voucherId = await saleWith(5, 1);
    const userId = String(nextVoucher * 10_000);
    await drain.sql.query('INSERT INTO tb_voucher_order (id, user_id, voucher_id) VALUES (4711, $1, $2)', [
      userId,
      voucherId,
    ]);
    expect(await drain.consumer.runOnce(0)).toMatchObject({ rejected: 1, acknowledged: 1 });
    expect(await drain.register.readMark(0, voucherId, userId)).toBe('4711');
    expect(await drain.facts(voucherId)).toMatchObject({ rows: 1, rejected: 1, unitsLeft: 4, marks: 1 });
  });

  it('for good is rejected alone, and the others of its batch are stored', async () => {
    await drain.sql.query(`
      CREATE FUNCTION refuse_666() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'user 666 is not welcome'; END $$;
      CREATE TRIGGER refuse_666 BEFORE INSERT ON tb_voucher_order FOR EACH ROW WHEN (NEW.user_id = 666)
        EXECUTE FUNCTION refuse_666();`);
    const voucherId = await saleWith(100, 99);
    await drain.buy(voucherId, [{ userId: '666', orderId: '666666' }]);
    expect(await drain.consumer.runOnce(0)).toMatchObject({ stored: 99, rejected: 1, acknowledged: 100 });
    expect(await drain.facts(voucherId)).toEqual({ rows: 99, rejected: 1, databaseStock: 1, unitsLeft: 1, marks: 99 });
    expect(await drain.reader.findOrder('666666')).toMatchObject({ status: 'REJECTED', reason: 'REFUSED_BY_DATABASE' });
    await drain.sql.query('DROP TRIGGER refuse_666 ON tb_voucher_order; DROP FUNCTION refuse_666');
  });
});

describe('a lock', () => {
  it('on the row of one voucher holds up that voucher alone; nothing is lost and nothing condemned', async () => {
    const locked = await saleWith(10, 10);
    const free = await saleWith(10, 10);
    await drain.sql.query('BEGIN');
    await drain.sql.query('SELECT FROM tb_seckill_voucher WHERE voucher_id = $1 FOR UPDATE', [locked]);
    try {
      expect(await drain.consumer.runOnce(0)).toMatchObject({ stored: 10, deferred: 10, rejected: 0 });
      expect(await drain.pending()).toBe(10);
      expect(drain.consumer.status().consumers[0]).toMatchObject({ lockedVouchers: 1, inHand: 0 });
      expect(await drain.consumer.runOnce(0)).toMatchObject({ stored: 0, deferred: 10, deadLettered: 0 });
    } finally {
      await drain.sql.query('ROLLBACK');
    }
    expect(await drain.consumer.runOnce(0)).toMatchObject({ stored: 10, acknowledged: 10 });
    expect(await drain.facts(locked)).toEqual({ rows: 10, rejected: 0, databaseStock: 0, unitsLeft: 0, marks: 10 });
    expect((await drain.facts(free)).rows).toBe(10);
  });

  it('outlives the entry: an order that waits is stored although its entry is deleted meanwhile', async () => {
    const voucherId = await saleWith(5, 3);
    await drain.sql.query('BEGIN');
    await drain.sql.query('SELECT FROM tb_seckill_voucher WHERE voucher_id = $1 FOR UPDATE', [voucherId]);
    try {
      expect(await drain.consumer.runOnce(0)).toMatchObject({ deferred: 3 });
      const [first] = await drain.redis.xrange(drain.stream, '-', '+');
      await drain.redis.xdel(drain.stream, first?.[0] ?? '');
    } finally {
      await drain.sql.query('ROLLBACK');
    }
    expect(await drain.consumer.runOnce(0)).toMatchObject({ stored: 3, vanished: 0 });
    expect(await drain.pending()).toBe(0);
    expect((await drain.facts(voucherId)).rows).toBe(3);
  });

  it('that makes slow work look dead brings two consumers to one row and one cut', async () => {
    const voucherId = await saleWith(5, 1);
    const other = await drain.process();
    const { StreamConsumer } = await import('./index.js');
    await drain.sql.query('BEGIN');
    await drain.sql.query('SELECT FROM tb_seckill_voucher WHERE voucher_id = $1 FOR UPDATE', [voucherId]);
    try {
      expect(await drain.consumer.runOnce(0)).toMatchObject({ deferred: 1 });
      await drain.letPendingAge();
      const both = await Promise.all([drain.consumer.runOnce(0), other.get(StreamConsumer).runOnce(0)]);
      expect(both.map(({ rejected, deadLettered }) => rejected + deadLettered)).toEqual([0, 0]);
    } finally {
      await drain.sql.query('ROLLBACK');
    }
    await drain.letPendingAge();
    await Promise.all([drain.consumer.runOnce(0), other.get(StreamConsumer).runOnce(0)]);
    await drain.end(other);
    await settle();
    expect(await drain.facts(voucherId)).toEqual({ rows: 1, rejected: 0, databaseStock: 4, unitsLeft: 4, marks: 1 });
  });

  it('of a buyer that somebody else holds leaves the order pending, and it is decided afterwards', async () => {
    const voucherId = await saleWith(5, 1);
    const lock = `lock:order:${nextVoucher * 10_000}`;
    await drain.redis.set(lock, 'by hand', 'PX', 60_000);
    // Where the database is short of units each order is judged by itself, under its buyer's lock.
    await drain.sql.query('UPDATE tb_seckill_voucher SET stock = 0 WHERE voucher_id = $1', [voucherId]);
    expect(await drain.consumer.runOnce(0)).toMatchObject({ deferred: 1, rejected: 0 });
    expect(await drain.pending()).toBe(1);
    await drain.redis.del(lock);
    await drain.sql.query('UPDATE tb_seckill_voucher SET stock = 5 WHERE voucher_id = $1', [voucherId]);
    expect(await drain.consumer.runOnce(0)).toMatchObject({ stored: 1, acknowledged: 1 });
  });
});

describe('stream and group', () => {
  it.each(['stream', 'group'] as const)('are made again from the beginning when the %s is gone', async (what) => {
    await settle();
    if (what === 'stream') await drain.redis.del(drain.stream);
    else await drain.redis.xgroup('DESTROY', drain.stream, drain.group);
    const voucherId = await saleWith(5, 5);
    expect(await drain.consumer.runOnce(0)).toMatchObject({ stored: 5 });
    expect((await drain.facts(voucherId)).rows).toBe(5);
    expect(await drain.pending()).toBe(0);
  });

  it('are made by five processes at the same moment without an error', async () => {
    await drain.redis.del(drain.stream);
    const voucherId = await saleWith(20, 20);
    const others = await Promise.all(Array.from({ length: 4 }, () => drain.process()));
    const { StreamConsumer } = await import('./index.js');
    const consumers = [drain.consumer, ...others.map((module) => module.get(StreamConsumer))];
    const counts = await Promise.all(consumers.map((consumer) => consumer.runOnce(0)));
    expect(counts.reduce((sum, { stored }) => sum + stored, 0)).toBe(20);
    expect(new Set(consumers.map((consumer) => consumer.status().consumers[0]?.name)).size).toBe(5);
    expect((await drain.facts(voucherId)).rows).toBe(20);
    for (const module of others) await drain.end(module);
    expect((await drain.consumerNames()).length).toBe(1);
  });
});

async function clearLetters(): Promise<void> {
  for (const letter of await drain.log.listDeadLetters(0, 1_000)) await drain.log.removeDeadLetter(0, letter.id);
}
