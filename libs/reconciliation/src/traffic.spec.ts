import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { disagreements, purchases, ReconciliationRoom } from '../../../test/support/reconciliation-room.js';
import { pause } from '../../../test/support/waiting.js';
import type { Finding, Repair } from './index.js';

let room: ReconciliationRoom;
let running: Rush | undefined;
const V = '100';

beforeEach(async () => {
  room = await ReconciliationRoom.start();
});
afterEach(async () => {
  await running?.end();
  running = undefined;
  await room.destroy();
});

interface Rush {
  /** Ends the rush and resolves when everything accepted is stored or rejected. */
  readonly end: () => Promise<void>;
  readonly accepted: Map<string, string>;
  readonly steps: () => number;
}

/** Buyers who come, some again, and a consumer that drains, until it is ended. */
function startRush(paceMs = 1): Rush {
  const accepted = new Map<string, string>();
  let goesOn = true;
  let steps = 0;
  const buying = (async () => {
    for (let user = 1_000; goesOn; user += 10) {
      const batch = [...purchases(10, user), { userId: String(user - 10), orderId: String(2_000_000 + user) }];
      const outcomes = await room.register.admit(
        0,
        batch.map((purchase) => ({ voucherId: V, ...purchase })),
        5_000,
      );
      outcomes.forEach((outcome, at) => {
        if (outcome.kind === 'ACCEPTED') accepted.set(batch[at]!.userId, outcome.orderId);
      });
      steps += 1;
      // The pace of the crowd.
      await pause(paceMs);
    }
  })();
  const draining = (async () => {
    while (goesOn) await room.drain();
  })();
  const end = async () => {
    goesOn = false;
    await Promise.all([buying, draining]);
    await room.drain();
  };
  running = { end, accepted, steps: () => steps };
  return running;
}

async function expectSoundEnd({ accepted }: Rush): Promise<void> {
  const sale = await room.inBothStores(V);
  expect(disagreements(sale)).toEqual([]);
  expect(await room.findings()).toEqual([]);
  const { rows } = await room.sql.query<{ user_id: string; id: string }>('SELECT user_id, id FROM tb_voucher_order');
  const recorded = new Set(rows.map((row) => `${row.user_id}:${row.id}`));
  expect([...accepted].filter(([user, order]) => !recorded.has(`${user}:${order}`))).toEqual([]);
}

describe('during a rush', () => {
  it('orders in flight are no differences', async () => {
    await room.onSale({ [V]: 5_000 });
    const rush = startRush();
    const seen: Finding[] = [];
    for (let look = 0; look < 4; look += 1) {
      seen.push(...(await room.reconciliation.inspect({ pauseMs: 20 })).findings);
    }
    expect(rush.steps()).toBeGreaterThan(4);
    await rush.end();
    expect(seen).toEqual([]);
    await expectSoundEnd(rush);
  });

  it('each kind of hand-made drift is named and repaired, and nothing is oversold or lost', async () => {
    await room.onSale({ [V]: 50_000 });
    await room.buy(V, purchases(20));
    await room.drain();
    const rush = startRush(20);
    const { redis, keys } = room;
    const marks = keys.marks(0, V);
    const damages: (() => Promise<unknown>)[] = [
      () => redis.hdel(marks, '1'),
      () => redis.hset(marks, '2', '999002'),
      () => redis.incrby(keys.stock(0, V), 7),
      () => redis.decrby(keys.stock(0, V), 3),
      () => room.storeOrder(V, { userId: '501', orderId: '5501' }),
      async () => {
        await room.storeOrder(V, { userId: '502', orderId: '5502' }, 7);
        await redis.hset(marks, '502', '5502');
        await redis.decr(keys.stock(0, V));
      },
      async () => {
        await redis.hset(marks, '503', '5503');
        await redis.decr(keys.stock(0, V));
      },
      () =>
        room.sql.query(
          'UPDATE tb_seckill_voucher SET units = units + 50, stock = stock + 50, units_version = units_version + 1 WHERE voucher_id = $1',
          [V],
        ),
      () => redis.del(keys.stock(0, V)),
      () => redis.del(keys.sale(0, V)),
      () => redis.del(marks),
    ];
    const repairs: Repair[] = [];
    for (const damage of damages) {
      await damage();
      const { before, repairs: done } = await room.reconciliation.pass({ actor: 'test', pauseMs: 20 });
      expect(before.findings.length).toBeGreaterThan(0);
      repairs.push(...done);
    }
    await rush.end();
    // What came up between a damage and its repair while buyers came: a last pass, as the periodic job makes it.
    await room.reconciliation.pass({ actor: 'test', pauseMs: 20 });
    await room.drain();
    await expectSoundEnd(rush);
    const kinds = new Set(repairs.filter(({ result }) => result === 'REPAIRED').map(({ finding }) => finding.kind));
    expect(kinds.size).toBeGreaterThanOrEqual(6);
  }, 120_000);

  it('a voucher that is rebuilt again and again sells exactly its units', async () => {
    await room.onSale({ [V]: 600 });
    const rush = startRush();
    for (let time = 0; time < 5; time += 1) {
      expect((await room.rebuilds.rebuildVoucher(V))?.outcome).toBe('OPENED');
    }
    await rush.end();
    await expectSoundEnd(rush);
  });

  it('a restock in steps leaves units = start + what was added, in both stores', async () => {
    await room.onSale({ [V]: 100 });
    const rush = startRush();
    const { StockChangeService } = await import('#vouchers');
    const looks = (async () => {
      const found: Finding[] = [];
      for (let look = 0; look < 5; look += 1)
        found.push(...(await room.reconciliation.inspect({ pauseMs: 50 })).findings);
      return found;
    })();
    for (let time = 0; time < 10; time += 1) await room.get(StockChangeService).change(V, 5, 'test');
    expect(await looks).toEqual([]);
    await rush.end();
    await expectSoundEnd(rush);
    expect((await room.inBothStores(V)).units).toBe(150);
  });

  it('Redis that loses everything in mid-sale, again and again, never sells a unit twice', async () => {
    await room.onSale({ [V]: 400 });
    const rush = startRush();
    for (let time = 0; time < 4; time += 1) {
      const from = rush.steps();
      while (rush.steps() < from + 3) await new Promise((resolve) => setImmediate(resolve));
      await room.redis.flushall();
      for (let attempt = 0; (await room.epochs.state(0)).kind !== 'OPEN'; attempt += 1) {
        await room.rebuilds.rebuildPartition(0).catch((error: unknown) => {
          if (attempt > 20) throw error;
        });
      }
    }
    await rush.end();
    await room.drain();
    // Accepted orders that only Redis knew went with it; what is stored is right and is all that is sold.
    const sale = await room.inBothStores(V);
    expect(disagreements(sale)).toEqual([]);
    expect(sale.rows).toBeLessThanOrEqual(400);
    expect(await room.findings()).toEqual([]);
  });
});
