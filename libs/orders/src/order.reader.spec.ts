import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openOrderRoom, ordersOf, type OrderRoom } from '../../../test/support/order-room.js';

let room: OrderRoom;

beforeAll(async () => {
  room = await openOrderRoom();
});
afterAll(() => room.close());

async function insert(columns: Record<string, unknown>): Promise<void> {
  const names = Object.keys(columns);
  await room.admin.query(
    `INSERT INTO tb_voucher_order (${names.join(', ')}) VALUES (${names.map((_, index) => `$${index + 1}`).join(', ')})`,
    Object.values(columns),
  );
}

describe('one order', () => {
  it('is read with all its times, which carry a zone and mean the same instant in any session', async () => {
    await insert({
      id: '9007199254740993',
      user_id: 1,
      voucher_id: 2,
      status: 6,
      pay_type: 3,
      create_time: '2026-01-02T03:04:05.678+08:00',
      pay_time: '2026-01-02T03:05:00+08:00',
      use_time: '2026-01-02T03:06:00+08:00',
      refund_time: '2026-01-02T03:07:00+08:00',
      update_time: '2026-01-02T03:08:00+08:00',
    });
    expect(await room.reader.findOrder('9007199254740993')).toEqual({
      orderId: '9007199254740993',
      userId: '1',
      voucherId: '2',
      status: 'REFUNDED',
      payType: 3,
      createTime: '2026-01-01T19:04:05.678Z',
      payTime: '2026-01-01T19:05:00.000Z',
      useTime: '2026-01-01T19:06:00.000Z',
      refundTime: '2026-01-01T19:07:00.000Z',
      updateTime: '2026-01-01T19:08:00.000Z',
    });
  });

  it('is undefined where neither table knows it', async () => {
    expect(await room.reader.findOrder('1')).toBeUndefined();
    expect(await room.reader.findByIds([])).toEqual(new Map());
  });

  it('that was rejected without a row is read like one with a row, without the cause', async () => {
    await room.admin.query(
      "INSERT INTO tb_order_rejection (order_id, user_id, voucher_id, reason, cause) VALUES (71, 1, 3, 'LOST_RIGHT', 'inner')",
    );
    await insert({ id: 72, user_id: 1, voucher_id: 3, status: 7, reason: 'NO_UNITS', cause: 'inner' });
    const found = await room.reader.findByIds(['71', '72', '73']);
    expect([...found.keys()].sort()).toEqual(['71', '72']);
    for (const [id, reason] of [
      ['71', 'LOST_RIGHT'],
      ['72', 'NO_UNITS'],
    ] as const) {
      expect(found.get(id)).toMatchObject({ orderId: id, status: 'REJECTED', reason });
      expect(JSON.stringify(found.get(id))).not.toContain('inner');
    }
  });
});

describe("a buyer's orders", () => {
  it('are paged newest first, each once, also when many share one instant and some are bare rejections', async () => {
    const userId = '500';
    for (let id = 1_000; id < 1_030; id += 1) {
      // Instants that differ by microseconds only: a page end must not round them.
      const instant = `2026-02-01T00:00:00.${String(100_000 + Math.floor(id / 3)).padStart(6, '0')}Z`;
      if (id % 5 === 0) {
        await room.admin.query(
          "INSERT INTO tb_order_rejection (order_id, user_id, voucher_id, reason, create_time) VALUES ($1, $2, $3, 'DISCARDED', $4)",
          [id, userId, id, instant],
        );
      } else await insert({ id, user_id: userId, voucher_id: id, create_time: instant });
    }
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await room.reader.listOrdersOfUser(userId, cursor, 7);
      if (page.kind !== 'PAGE') throw new Error(page.kind);
      expect(page.items.length).toBeLessThanOrEqual(7);
      seen.push(...page.items.map((order) => order.orderId));
      cursor = page.nextCursor;
      if (cursor !== undefined) expect(cursor).toMatch(/^[A-Za-z0-9_-]+$/);
    } while (cursor !== undefined);
    expect(seen).toEqual(Array.from({ length: 30 }, (_, index) => String(1_029 - index)));
  });

  it('are empty for a stranger, and a cursor that is not ours is refused', async () => {
    expect(await room.reader.listOrdersOfUser('404')).toEqual({ kind: 'PAGE', items: [] });
    for (const cursor of [
      '',
      'x',
      '!!!',
      'MQ',
      Buffer.from('1.99999999999999999999').toString('base64url'),
      'A'.repeat(1_000),
    ]) {
      expect(await room.reader.listOrdersOfUser('404', cursor)).toEqual({ kind: 'INVALID_CURSOR' });
    }
  });

  it('of one voucher are listed with those that were rejected, newest first', async () => {
    await insert({ id: 81, user_id: 600, voucher_id: 8, create_time: '2026-03-01T00:00:00Z', status: 4 });
    await insert({ id: 82, user_id: 600, voucher_id: 8, create_time: '2026-03-01T00:00:01Z' });
    await insert({ id: 83, user_id: 601, voucher_id: 8 });
    const orders = await room.reader.listOrdersOfVoucher('8', '600');
    expect(orders.map(({ orderId, status }) => [orderId, status])).toEqual([
      ['82', 'UNPAID'],
      ['81', 'CANCELLED'],
    ]);
  });
});

describe('the orders of a voucher', () => {
  it('are walked in pages: active ones by buyer, the others by id, none twice, none left out', async () => {
    await room.putVoucher('900', 100);
    const epochNumber = await room.repository.epochNumber(0);
    await room.repository.createOrders({ partition: 0, epochNumber, orders: ordersOf('900', 25, 1, 900_000) });
    await room.admin.query('UPDATE tb_voucher_order SET status = 4 WHERE voucher_id = 900 AND user_id % 5 = 0');
    await room.admin.query(
      "INSERT INTO tb_order_rejection (order_id, user_id, voucher_id, reason) VALUES (900100, 77, 900, 'DISCARDED')",
    );
    const active: string[] = [];
    for (let after = '0'; ;) {
      const page = await room.reader.activeOrders('900', after, 7);
      active.push(...page.map((order) => order.userId));
      if (page.length < 7) break;
      after = page.at(-1)?.userId ?? '0';
    }
    expect(active).toEqual(
      Array.from({ length: 25 }, (_, index) => String(index + 1)).filter((id) => Number(id) % 5 !== 0),
    );
    const inactive = [
      ...(await room.reader.inactiveOrders('900', '0', 4)),
      ...(await room.reader.inactiveOrders('900', '900020', 4)),
    ];
    expect(inactive.map(({ orderId, status }) => `${orderId} ${status}`)).toEqual([
      '900005 CANCELLED',
      '900010 CANCELLED',
      '900015 CANCELLED',
      '900020 CANCELLED',
      '900025 CANCELLED',
      '900100 REJECTED',
    ]);
  });
});

describe('the stock ledger', () => {
  it('keeps lines with the transaction that they describe, and lists them by voucher, oldest first', async () => {
    await expect(
      room.database.transaction(async (manager) => {
        await room.ledger.append(manager, { kind: 'RESTOCK', voucherId: '7', reason: 'undone', actor: 'user:1' });
        throw new Error('changed my mind');
      }),
    ).rejects.toThrow('changed my mind');
    await room.database.transaction((manager) =>
      room.ledger.append(
        manager,
        { kind: 'PUBLICATION', voucherId: '7', after: 10, reason: 'put on sale', actor: 'user:1' },
        { kind: 'RESTOCK', voucherId: '7', before: 10, after: 15, reason: 'restocked', actor: 'user:1' },
      ),
    );
    await room.ledger.note({
      kind: 'RELEASE',
      voucherId: '7',
      orderId: '9007199254740993',
      reason: 'NO_UNITS',
      actor: 'worker',
    });
    const lines = await room.ledger.list('7');
    expect(lines.map(({ kind, before, after, orderId }) => [kind, before, after, orderId])).toEqual([
      ['PUBLICATION', undefined, 10, undefined],
      ['RESTOCK', 10, 15, undefined],
      ['RELEASE', undefined, undefined, '9007199254740993'],
    ]);
    expect(await room.ledger.list('7', lines[0]?.id, 1)).toEqual([lines[1]]);
  });
});
