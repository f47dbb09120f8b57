import pg from 'pg';
import { register } from 'prom-client';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { NewOrder, OrderResult } from '#orders';
import { openOrderRoom, ordersOf, type OrderRoom } from '../../../test/support/order-room.js';

let room: OrderRoom;
let epochNumber: number;
let nextVoucher = 100;

beforeAll(async () => {
  room = await openOrderRoom({ DB_POOL_SIZE: '4' });
  epochNumber = await room.repository.epochNumber(0);
});
afterAll(() => room.close());

async function voucher(stock: number): Promise<string> {
  const voucherId = String((nextVoucher += 1));
  await room.putVoucher(voucherId, stock);
  return voucherId;
}

async function create(orders: readonly NewOrder[], epoch = epochNumber): Promise<readonly OrderResult[]> {
  const outcome = await room.repository.createOrders({ partition: 0, epochNumber: epoch, orders });
  if (outcome.kind !== 'DONE') throw new Error(`the batch came to ${outcome.kind}`);
  return outcome.results;
}

const kinds = (results: readonly OrderResult[]): string[] =>
  results.map((result) => (result.kind === 'REJECTED' ? result.reason : result.kind));

const order = (orderId: string | number, userId: string | number, voucherId: string): NewOrder => ({
  orderId: String(orderId),
  userId: String(userId),
  voucherId,
  acceptedAtMs: 1_764_500_000_123,
});

let nextId = 5_000_000;
const freshId = (): string => String((nextId += 1));

/** Refuses every row of buyer 666, whatever its status, on the given table. */
async function refuseBuyer666(table: string, when = 'true'): Promise<() => Promise<void>> {
  await room.admin.query(`
    CREATE OR REPLACE FUNCTION refuse_666() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF NEW.user_id = 666 AND ${when} THEN RAISE EXCEPTION 'buyer 666 is not served'; END IF;
      RETURN NEW;
    END $$;
    CREATE TRIGGER refuse_666 BEFORE INSERT ON ${table} FOR EACH ROW EXECUTE FUNCTION refuse_666();`);
  return async () => {
    await room.admin.query(`DROP TRIGGER refuse_666 ON ${table}`);
  };
}

describe('a good batch', () => {
  it('of 1,000 orders is one transaction with one commit, and takes the units once', async () => {
    const voucherId = await voucher(2_000);
    const orders = ordersOf(voucherId, 1_000, 1, 1_000_000);
    await room.admin.query(`CREATE TABLE seen_transactions (id xid8);
      CREATE FUNCTION note_transaction() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN INSERT INTO seen_transactions VALUES (pg_current_xact_id()); RETURN NULL; END $$;
      CREATE TRIGGER note_transaction AFTER INSERT OR UPDATE OR DELETE ON tb_voucher_order EXECUTE FUNCTION note_transaction();
      CREATE TRIGGER note_transaction AFTER UPDATE ON tb_seckill_voucher EXECUTE FUNCTION note_transaction();`);
    const results = await create(orders);
    const { rows } = await room.admin.query('SELECT count(DISTINCT id)::int AS transactions FROM seen_transactions');
    await room.admin.query(`DROP TRIGGER note_transaction ON tb_voucher_order;
      DROP TRIGGER note_transaction ON tb_seckill_voucher; DROP TABLE seen_transactions;`);
    expect(rows).toEqual([{ transactions: 1 }]);
    expect(results).toHaveLength(1_000);
    expect(new Set(kinds(results))).toEqual(new Set(['STORED']));
    expect(await room.stockOf(voucherId)).toBe(1_000);
    expect(await room.rowsOf(voucherId)).toHaveLength(1_000);
  });

  it('keeps every digit of 64-bit ids, and the instant of acceptance', async () => {
    const voucherId = '9007199254740993';
    await room.putVoucher(voucherId, 3);
    const orders = [
      order('9223372036854775807', '9223372036854775806', voucherId),
      order('9007199254740993', '9007199254740993', voucherId),
      order('9007199254740992', '9007199254740992', voucherId),
    ];
    expect(kinds(await create(orders))).toEqual(['STORED', 'STORED', 'STORED']);
    expect(await room.rowsOf(voucherId)).toEqual([
      '9007199254740992:9007199254740992',
      '9007199254740993:9007199254740993',
      '9223372036854775806:9223372036854775807',
    ]);
    expect((await room.reader.findOrder('9223372036854775807'))?.createTime).toBe('2025-11-30T10:53:20.123Z');
  });

  it('sells the last unit, and no further one, guarding the stock by the number of rows', async () => {
    const voucherId = await voucher(5);
    expect(kinds(await create(ordersOf(voucherId, 5, 1, 2_000_000)))).toEqual(Array(5).fill('STORED'));
    expect(await room.stockOf(voucherId)).toBe(0);
    expect(kinds(await create([order(freshId(), 99, voucherId)]))).toEqual(['NO_UNITS']);
    expect(await room.stockOf(voucherId)).toBe(0);
    expect(await room.rowsOf(voucherId)).toHaveLength(5);
  });

  it('refuses ids that are no decimal strings before anything is sent', async () => {
    const voucherId = await voucher(1);
    await expect(create([order("1'); --", 1, voucherId)])).rejects.toBeInstanceOf(TypeError);
    await expect(create([order('07', 1, voucherId)])).rejects.toBeInstanceOf(TypeError);
    expect(await room.stockOf(voucherId)).toBe(1);
  });

  it('without orders asks the database nothing', async () => {
    expect(await create([])).toEqual([]);
  });
});

describe('orders that are sent again', () => {
  it('change nothing, in any company and order', async () => {
    const voucherId = await voucher(100);
    const orders = ordersOf(voucherId, 60, 1, 3_000_000);
    await create(orders.slice(0, 40));
    const results = kinds(await create(orders.toReversed()));
    expect(results.filter((kind) => kind === 'STORED')).toHaveLength(20);
    expect(results.filter((kind) => kind === 'ALREADY_STORED')).toHaveLength(40);
    expect(kinds(await create(orders))).toEqual(Array(60).fill('ALREADY_STORED'));
    expect(await room.stockOf(voucherId)).toBe(40);
  });

  it('within one batch are stored once', async () => {
    const voucherId = await voucher(10);
    const one = order(freshId(), 1, voucherId);
    const results = kinds(await create([one, one, order(freshId(), 2, voucherId), one]));
    expect(results).toEqual(['ALREADY_STORED', 'ALREADY_STORED', 'STORED', 'ALREADY_STORED']);
    expect(await room.stockOf(voucherId)).toBe(8);
  });

  it('after they were cancelled or refunded are done, and do not come back to life', async () => {
    const voucherId = await voucher(10);
    const orders = ordersOf(voucherId, 2, 1, 3_100_000);
    await create(orders);
    await room.admin.query('UPDATE tb_voucher_order SET status = 4 WHERE id = 3100001');
    await room.admin.query('UPDATE tb_voucher_order SET status = 6 WHERE id = 3100002');
    expect(kinds(await create(orders))).toEqual(['ALREADY_CANCELLED', 'ALREADY_CANCELLED']);
    expect(await room.rowsOf(voucherId)).toEqual([]);
  });

  it('after a rejection are rejected again, for the same reason', async () => {
    const voucherId = await voucher(10);
    const one = order(freshId(), 1, voucherId);
    const first = await room.repository.rejectOrder(0, one, 'DISCARDED', 'an operator gave it up');
    expect(first).toEqual({ kind: 'REJECTED', reason: 'DISCARDED' });
    expect(await room.repository.rejectOrder(0, one, 'LOST_RIGHT', 'again')).toEqual(first);
    expect(await create([one, order(freshId(), 2, voucherId)])).toEqual([first, { kind: 'STORED' }]);
    expect(await room.stockOf(voucherId)).toBe(9);
    expect((await room.ledger.list(voucherId)).map((line) => [line.kind, line.orderId, line.reason])).toEqual([
      ['REJECTION', one.orderId, 'DISCARDED'],
    ]);
  });

  it('are not rejected once they are stored', async () => {
    const voucherId = await voucher(10);
    const one = order(freshId(), 1, voucherId);
    await create([one]);
    expect(await room.repository.rejectOrder(0, one, 'DISCARDED', 'too late')).toEqual({ kind: 'ALREADY_STORED' });
    expect(await room.rowsOf(voucherId)).toHaveLength(1);
  });
});

describe('orders that the rule refuses', () => {
  it('end as rejected, without a cut, when their buyer has another active order; the good ones are stored', async () => {
    const voucherId = await voucher(50);
    await room.admin.query('INSERT INTO tb_voucher_order (id, user_id, voucher_id) VALUES (41, 7, $1)', [voucherId]);
    const planted = order(freshId(), 7, voucherId);
    const results = await create([planted, ...ordersOf(voucherId, 10, 100, 3_200_000)]);
    expect(results[0]).toEqual({ kind: 'REJECTED', reason: 'OTHER_ACTIVE_ORDER', activeOrderId: '41' });
    expect(kinds(results.slice(1))).toEqual(Array(10).fill('STORED'));
    expect(await room.stockOf(voucherId)).toBe(40);
    expect(await create([planted])).toEqual([results[0]]);
    expect(await room.reader.findOrder(planted.orderId)).toMatchObject({
      status: 'REJECTED',
      reason: 'OTHER_ACTIVE_ORDER',
    });
  });

  it('of one buyer twice in one batch: the older id is stored, the other rejected', async () => {
    const voucherId = await voucher(50);
    const [older, younger] = [order(freshId(), 7, voucherId), order(freshId(), 7, voucherId)];
    expect(await create([younger, older])).toEqual([
      { kind: 'REJECTED', reason: 'OTHER_ACTIVE_ORDER', activeOrderId: older.orderId },
      { kind: 'STORED' },
    ]);
    expect(await room.stockOf(voucherId)).toBe(49);
  });

  it('may be bought anew after the first order was cancelled', async () => {
    const voucherId = await voucher(50);
    const first = order(freshId(), 7, voucherId);
    await create([first]);
    await room.admin.query('UPDATE tb_voucher_order SET status = 4 WHERE id = $1', [first.orderId]);
    expect(kinds(await create([order(freshId(), 7, voucherId)]))).toEqual(['STORED']);
  });

  it('leave the row alone whose id they carry', async () => {
    const [mine, theirs] = [await voucher(10), await voucher(10)];
    const old = order(freshId(), 1, mine);
    await create([old]);
    const before = await room.reader.findOrder(old.orderId);
    const strangers = [order(old.orderId, 2, mine), order(old.orderId, 1, theirs), order(old.orderId, 2, theirs)];
    expect(kinds(await create(strangers))).toEqual(['FOREIGN_ID', 'FOREIGN_ID', 'FOREIGN_ID']);
    expect(await room.reader.findOrder(old.orderId)).toEqual(before);
    expect([await room.stockOf(mine), await room.stockOf(theirs)]).toEqual([9, 10]);
    expect(await room.repository.rejectOrder(0, strangers[0] as NewOrder, 'DISCARDED', 'x')).toEqual({
      kind: 'FOREIGN_ID',
    });
  });

  it('of an unknown voucher are named and delay nobody; they are stored once the voucher is back', async () => {
    const voucherId = await voucher(10);
    const lost = order(freshId(), 1, '987654321');
    expect(kinds(await create([lost, order(freshId(), 1, voucherId)]))).toEqual(['UNKNOWN_VOUCHER', 'STORED']);
    await room.putVoucher('987654321', 1);
    expect(kinds(await create([lost]))).toEqual(['STORED']);
  });

  it('exceed the units: the oldest are stored, each other one is rejected for good, other vouchers are not touched by it', async () => {
    const [short, ample] = [await voucher(3), await voucher(100)];
    const many = ordersOf(short, 8, 1, 3_300_000);
    const batch = [...many.toReversed(), ...ordersOf(ample, 5, 1, 3_400_000)];
    const results = kinds(await create(batch));
    expect(results.slice(0, 8)).toEqual([...Array<string>(5).fill('NO_UNITS'), 'STORED', 'STORED', 'STORED']);
    expect(results.slice(8)).toEqual(Array(5).fill('STORED'));
    expect([await room.stockOf(short), await room.stockOf(ample)]).toEqual([0, 95]);
    await room.admin.query('UPDATE tb_seckill_voucher SET stock = 5 WHERE voucher_id = $1', [short]);
    expect(kinds(await create(batch)).slice(0, 8)).toEqual([
      ...Array<string>(5).fill('NO_UNITS'),
      ...Array<string>(3).fill('ALREADY_STORED'),
    ]);
    expect(await room.stockOf(short)).toBe(5);
  });

  it('find no unit while somebody holds the buyer lock: the order waits, and is judged after the release', async () => {
    const voucherId = await voucher(0);
    const [held, free] = [order(freshId(), 31, voucherId), order(freshId(), 32, voucherId)];
    await lockBuyer('31');
    expect(kinds(await create([held, free]))).toEqual(['DEFERRED', 'NO_UNITS']);
    expect(await room.reader.findOrder(held.orderId)).toBeUndefined();
    await unlockBuyer('31');
    expect(kinds(await create([held, free]))).toEqual(['NO_UNITS', 'NO_UNITS']);
  });
});

async function lockBuyer(userId: string): Promise<void> {
  await redis('SET', `lock:order:${userId}`, 'by hand', 'PX', '60000');
}
async function unlockBuyer(userId: string): Promise<void> {
  await redis('DEL', `lock:order:${userId}`);
}
async function redis(...command: string[]): Promise<void> {
  const { RedisConnections } = await import('#redis');
  const [name, ...values] = command as [string, ...string[]];
  await room.module.get(RedisConnections, { strict: false }).command.call(name, ...values);
}

describe('orders that the database refuses for good', () => {
  it('are separated from the good ones and recorded with their cause; the stock is not cut for them', async () => {
    const voucherId = await voucher(100);
    const allow = await refuseBuyer666('tb_voucher_order', 'NEW.status = 1');
    const bad = order(freshId(), 666, voucherId);
    const batch = [...ordersOf(voucherId, 30, 1, 3_500_000), bad, ...ordersOf(voucherId, 30, 100, 3_500_000)];
    const results = kinds(await create(batch));
    expect(results[30]).toBe('REFUSED_BY_DATABASE');
    expect(results.filter((kind) => kind === 'STORED')).toHaveLength(60);
    expect(await room.stockOf(voucherId)).toBe(40);
    for (let round = 0; round < 10; round += 1) expect(kinds(await create([bad]))).toEqual(['REFUSED_BY_DATABASE']);
    expect(await room.stockOf(voucherId)).toBe(40);
    await allow();
    const { rows } = await room.admin.query('SELECT status, cause FROM tb_voucher_order WHERE id = $1', [bad.orderId]);
    expect(rows).toEqual([{ status: 7, cause: 'buyer 666 is not served (SQLSTATE P0001)' }]);
  });

  it('are recorded without a row where even that is refused, and stay rejected when the obstacle is gone', async () => {
    const voucherId = await voucher(100);
    const allow = await refuseBuyer666('tb_voucher_order');
    const bad = order(freshId(), 666, voucherId);
    expect(kinds(await create([bad, order(freshId(), 7, voucherId)]))).toEqual(['REFUSED_BY_DATABASE', 'STORED']);
    await allow();
    expect(kinds(await create([bad]))).toEqual(['REFUSED_BY_DATABASE']);
    expect(await room.rowsOf(voucherId)).toHaveLength(1);
    expect(await room.stockOf(voucherId)).toBe(99);
    expect(await room.reader.findOrder(bad.orderId)).toMatchObject({
      status: 'REJECTED',
      reason: 'REFUSED_BY_DATABASE',
    });
    expect((await room.ledger.list(voucherId)).map((line) => line.orderId)).toEqual([bad.orderId]);
    expect(kinds(await create([order(bad.orderId, 8, voucherId)]))).toEqual(['FOREIGN_ID']);
    expect(kinds(await create([order(freshId(), 666, voucherId)]))).toEqual(['STORED']);
  });

  it('name the other active order also where the database refuses every row of the buyer', async () => {
    const voucherId = await voucher(100);
    const first = order(freshId(), 666, voucherId);
    await create([first]);
    const allow = await refuseBuyer666('tb_voucher_order');
    expect(await create([order(freshId(), 666, voucherId)])).toEqual([
      { kind: 'REJECTED', reason: 'OTHER_ACTIVE_ORDER', activeOrderId: first.orderId },
    ]);
    await allow();
  });

  it('end also where the table drops the row in silence', async () => {
    const voucherId = await voucher(100);
    await room.admin.query(`CREATE FUNCTION drop_666() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN IF NEW.user_id = 666 THEN RETURN NULL; END IF; RETURN NEW; END $$;
      CREATE TRIGGER drop_666 BEFORE INSERT ON tb_voucher_order FOR EACH ROW EXECUTE FUNCTION drop_666();`);
    const results = kinds(await create([order(freshId(), 666, voucherId), ...ordersOf(voucherId, 5, 1, 3_600_000)]));
    await room.admin.query('DROP TRIGGER drop_666 ON tb_voucher_order');
    expect(results).toEqual(['REFUSED_BY_DATABASE', ...Array<string>(5).fill('STORED')]);
    expect(await room.stockOf(voucherId)).toBe(95);
  });

  it('also at COMMIT, by a deferred trigger, are found alone', async () => {
    const voucherId = await voucher(100);
    await room.admin.query(`CREATE FUNCTION refuse_late() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN IF NEW.user_id = 666 AND NEW.status = 1 THEN RAISE EXCEPTION 'too late'; END IF; RETURN NULL; END $$;
      CREATE CONSTRAINT TRIGGER refuse_late AFTER INSERT ON tb_voucher_order DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION refuse_late();`);
    const results = kinds(await create([...ordersOf(voucherId, 5, 1, 3_700_000), order(freshId(), 666, voucherId)]));
    await room.admin.query('DROP TRIGGER refuse_late ON tb_voucher_order');
    expect(results).toEqual([...Array<string>(5).fill('STORED'), 'REFUSED_BY_DATABASE']);
    expect(await room.stockOf(voucherId)).toBe(95);
  });
});

describe('rows that somebody else holds', () => {
  async function holding(sql: string, values: unknown[], work: () => Promise<void>): Promise<void> {
    const holder = new pg.Client({ connectionString: room.url });
    await holder.connect();
    try {
      await holder.query('BEGIN');
      await holder.query(sql, values);
      await work();
    } finally {
      await holder.query('ROLLBACK');
      await holder.end();
    }
  }

  it('defer the orders of their voucher; those of the others are stored; after the release all are', async () => {
    const [held, free, other] = [await voucher(10), await voucher(10), await voucher(10)];
    const orders = [
      order(freshId(), 1, held),
      order(freshId(), 1, free),
      order(freshId(), 2, held),
      order(freshId(), 1, other),
    ];
    await holding('SELECT FROM tb_seckill_voucher WHERE voucher_id = $1 FOR UPDATE', [held], async () => {
      expect(kinds(await create(orders))).toEqual(['DEFERRED', 'STORED', 'DEFERRED', 'STORED']);
      expect(kinds(await create(orders.slice(2, 3)))).toEqual(['DEFERRED']);
    });
    expect(kinds(await create(orders))).toEqual(['STORED', 'ALREADY_STORED', 'STORED', 'ALREADY_STORED']);
    expect(await Promise.all([held, free, other].map(room.stockOf))).toEqual([8, 9, 9]);
  });

  it('that are an uncommitted order of the same buyer block one voucher only', async () => {
    const [held, free] = [await voucher(10), await voucher(10)];
    const orders = [order(freshId(), 1, held), order(freshId(), 1, free)];
    await holding('INSERT INTO tb_voucher_order (id, user_id, voucher_id) VALUES (43, 1, $1)', [held], async () => {
      expect(kinds(await create(orders))).toEqual(['DEFERRED', 'STORED']);
    });
    expect(kinds(await create(orders))).toEqual(['STORED', 'ALREADY_STORED']);
  });

  it('survives that its session is ended in mid-batch: a passing error, nothing stored, and then all', async () => {
    const voucherId = await voucher(10);
    const orders = ordersOf(voucherId, 5, 1, 3_800_000);
    await holding('SELECT FROM tb_seckill_voucher WHERE voucher_id = $1 FOR UPDATE', [voucherId], async () => {
      const failed = expect(create(orders)).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE', kind: 'PASSING' });
      await vi.waitFor(async () => {
        const ended = await room.admin.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock' AND application_name = 'flash-sale'`);
        expect(ended.rowCount).toBe(1);
      });
      await failed;
    });
    expect(await room.stockOf(voucherId)).toBe(10);
    await vi.waitFor(async () => expect(kinds(await create(orders))).toEqual(Array(5).fill('STORED')));
    expect(await room.stockOf(voucherId)).toBe(5);
  });
});

describe('the fence', () => {
  it('keeps a batch of an older number out, whole, and names the current one', async () => {
    const voucherId = await voucher(10);
    const before = await room.repository.epochNumber(3);
    expect(await room.repository.raiseEpochNumber(3)).toBe(before + 1);
    const orders = ordersOf(voucherId, 3, 1, 3_900_000);
    const stale = await room.repository.createOrders({ partition: 3, epochNumber: before, orders });
    expect(stale).toEqual({ kind: 'STALE_EPOCH', epochNumber: before + 1 });
    expect(await room.rowsOf(voucherId)).toEqual([]);
    expect(await room.stockOf(voucherId)).toBe(10);
    const stored = await room.repository.createOrders({ partition: 3, epochNumber: before + 1, orders });
    expect(stored.kind).toBe('DONE');
  });

  it('registers an unknown partition instead of failing', async () => {
    const voucherId = await voucher(10);
    const outcome = await room.repository.createOrders({
      partition: 9,
      epochNumber: 0,
      orders: ordersOf(voucherId, 1),
    });
    expect(outcome).toEqual({ kind: 'STALE_EPOCH', epochNumber: 1 });
    await room.repository.registerPartition(9);
    expect(await room.repository.epochNumber(9)).toBe(1);
    expect(await room.repository.raiseEpochNumber(10)).toBe(2);
    await expect(room.repository.registerPartition(-1)).rejects.toBeInstanceOf(TypeError);
  });

  it('keeps for which data history the whole partition was last rebuilt', async () => {
    await room.repository.raiseEpochNumber(11);
    expect((await room.repository.rebuiltHistories()).has(11)).toBe(false);
    const number = await room.repository.raiseEpochNumber(11, 'a'.repeat(40));
    expect((await room.repository.rebuiltHistories()).get(11)).toBe('a'.repeat(40));
    // A voucher's own rebuild says nothing of the partition.
    expect(await room.repository.raiseEpochNumber(11)).toBe(number + 1);
    expect((await room.repository.rebuiltHistories()).get(11)).toBe('a'.repeat(40));
    await room.repository.raiseEpochNumber(11, 'b'.repeat(40));
    expect((await room.repository.rebuiltHistories()).get(11)).toBe('b'.repeat(40));
  });

  it('is raised only after the running batches have ended, and no batch stores after it was raised', async () => {
    const voucherId = await voucher(1_000);
    const number = await room.repository.epochNumber(4);
    const batches = Array.from({ length: 20 }, (_, index) =>
      room.repository.createOrders({
        partition: 4,
        epochNumber: number,
        orders: ordersOf(voucherId, 20, index * 20 + 1, 4_000_000),
      }),
    );
    await room.repository.raiseEpochNumber(4);
    const seen = (await room.rowsOf(voucherId)).length;
    const outcomes = await Promise.all(batches);
    expect((await room.rowsOf(voucherId)).length).toBe(seen);
    expect(outcomes.filter((outcome) => outcome.kind === 'DONE').length * 20).toBe(seen);
    expect(await room.stockOf(voucherId)).toBe(1_000 - seen);
  });
});

describe('several writers', () => {
  it('with shuffled batches of the same orders store each once, without a deadlock', async () => {
    const vouchers = [await voucher(500), await voucher(500), await voucher(500)];
    const orders = vouchers.flatMap((voucherId, index) => ordersOf(voucherId, 200, 1, 4_100_000 + index * 1_000));
    const troubles = async (): Promise<number> => {
      const metric = await register.getSingleMetric('seckill_database_transactions_total')?.get();
      return (metric?.values ?? [])
        .filter(({ labels }) => labels.outcome === 'passing' || labels.outcome === 'lock_timeout')
        .reduce((sum, { value }) => sum + value, 0);
    };
    const before = await troubles();
    const writers = Array.from({ length: 4 }, async (_, writer) => {
      const shuffled = orders
        .map((one, index) => ({ one, key: (index * 7_919 + writer * 104_729) % 65_537 }))
        .sort((a, b) => a.key - b.key)
        .map(({ one }) => one);
      const results: OrderResult[] = [];
      for (let start = 0; start < shuffled.length; start += 50)
        results.push(...(await create(shuffled.slice(start, start + 50))));
      return kinds(results);
    });
    const results = (await Promise.all(writers)).flat();
    expect(results.filter((kind) => kind === 'STORED')).toHaveLength(600);
    expect(results.filter((kind) => kind === 'ALREADY_STORED')).toHaveLength(1_800);
    expect(await Promise.all(vouchers.map(room.stockOf))).toEqual([300, 300, 300]);
    expect(await troubles()).toBe(before);
  });

  it('that store and reject the same orders at once agree on one answer for each', async () => {
    const voucherId = await voucher(500);
    const orders = ordersOf(voucherId, 60, 1, 4_200_000);
    const [stored, rejections] = await Promise.all([
      Promise.all([create(orders.slice(0, 30)), create(orders.slice(30))]),
      Promise.all(orders.map((one) => room.repository.rejectOrder(0, one, 'LOST_RIGHT', 'raced'))),
    ]);
    const first = stored.flat();
    for (const [index, result] of rejections.entries()) {
      expect([first[index]?.kind, result.kind]).toSatisfy(
        ([a, b]: string[]) => (a === 'STORED' && b === 'ALREADY_STORED') || (a === 'REJECTED' && b === 'REJECTED'),
      );
    }
    const rows = await room.rowsOf(voucherId);
    expect(rows.length).toBe(first.filter((result) => result.kind === 'STORED').length);
    expect(await room.stockOf(voucherId)).toBe(500 - rows.length);
  });
});

describe('a pool of one connection', () => {
  it('stores 500 orders while others read, reject and count: nothing waits for itself', async () => {
    const narrow = await openOrderRoom({ DB_POOL_SIZE: '1' });
    await narrow.putVoucher('1', 400);
    await narrow.putVoucher('2', 1_000);
    const number = await narrow.repository.epochNumber(0);
    const orders = ordersOf('2', 500);
    const stored = Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        narrow.repository.createOrders({
          partition: 0,
          epochNumber: number,
          orders: orders.slice(index * 50, index * 50 + 50),
        }),
      ),
    );
    const read = Promise.all(orders.slice(0, 50).map((one) => narrow.reader.findOrder(one.orderId)));
    const rejected = narrow.repository.rejectOrder(0, order(7, 7, '1'), 'DISCARDED', 'meanwhile');
    await narrow.database.ping(10_000);
    expect((await stored).every((outcome) => outcome.kind === 'DONE')).toBe(true);
    expect(await read).toHaveLength(50);
    expect(await rejected).toMatchObject({ kind: 'REJECTED' });
    expect(await narrow.stockOf('2')).toBe(500);
    await narrow.close();
  });
});
