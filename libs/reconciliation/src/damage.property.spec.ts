import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { disagreements, ReconciliationRoom } from '../../../test/support/reconciliation-room.js';

let room: ReconciliationRoom;

beforeAll(async () => {
  room = await ReconciliationRoom.start();
  await room.onSale({});
});
afterAll(async () => {
  await room.destroy();
});

const UNITS = 6;
const BUYERS = 8;

const buyer = fc.integer({ min: 1, max: BUYERS });
/** What a hand, a crash or a loss may do to one voucher; `n` picks a buyer. */
const damage = fc.oneof(
  fc.record({ kind: fc.constant('buy' as const), n: buyer }),
  fc.record({ kind: fc.constant('drain' as const) }),
  fc.record({ kind: fc.constant('move stock' as const), by: fc.integer({ min: -5, max: 5 }) }),
  fc.record({ kind: fc.constant('stock is' as const), value: fc.constantFrom('abc', '1.5', '', '-3', '1e3') }),
  fc.record({ kind: fc.constant('lose mark' as const), n: buyer }),
  fc.record({ kind: fc.constant('foreign mark' as const), n: buyer, m: buyer }),
  fc.record({ kind: fc.constant('made-up mark' as const), n: buyer }),
  fc.record({ kind: fc.constant('no id' as const), user: fc.constantFrom('x', '0', '-1', '7') }),
  fc.record({ kind: fc.constant('lose key' as const), key: fc.constantFrom('sale', 'stock', 'marks') }),
  fc.record({ kind: fc.constant('stray key' as const), key: fc.constantFrom('sale', 'stock', 'marks') }),
  fc.record({
    kind: fc.constant('lose field' as const),
    field: fc.constantFrom('status', 'units', 'version', 'endMs'),
  }),
  fc.record({ kind: fc.constant('lose stream' as const) }),
  fc.record({ kind: fc.constant('made-up entry' as const), n: buyer }),
  fc.record({ kind: fc.constant('reject without release' as const), n: buyer }),
  fc.record({ kind: fc.constant('abandoned rebuild' as const) }),
  fc.record({ kind: fc.constant('repair pass' as const) }),
);
type Damage = typeof damage extends fc.Arbitrary<infer T> ? T : never;

let sales = 100;
let orders = 1_000_000;

class Voucher {
  readonly id = String((sales += 1));

  private user(n: number): string {
    return String(Number(this.id) * 100 + n);
  }

  private get keys() {
    return { ...room.keys.saleKeys(0, this.id) } as Record<string, string>;
  }

  private held(n: number): Promise<string | null> {
    return room.redis.hget(this.keys['marks']!, this.user(n)).catch(() => null);
  }

  private setMark(user: string, value: string): Promise<unknown> {
    return room.redis.hset(this.keys['marks']!, user, value).catch(() => undefined);
  }

  async suffer(step: Damage): Promise<void> {
    const { redis } = room;
    switch (step.kind) {
      case 'buy':
        await room.buy(this.id, [{ userId: this.user(step.n), orderId: String((orders += 1)) }]);
        return;
      case 'drain':
        return room.drain();
      case 'move stock':
        await redis.incrby(this.keys['stock']!, step.by).catch(() => undefined);
        return;
      case 'stock is':
        await redis.set(this.keys['stock']!, step.value);
        return;
      case 'lose mark':
        await redis.hdel(this.keys['marks']!, this.user(step.n)).catch(() => undefined);
        return;
      case 'foreign mark': {
        const other = await this.held(step.m);
        if (other !== null) await this.setMark(this.user(step.n), other);
        return;
      }
      case 'made-up mark':
        await this.setMark(this.user(step.n), String((orders += 1)));
        return;
      case 'no id':
        await this.setMark(step.user, 'no id');
        return;
      case 'lose key':
        await redis.del(this.keys[step.key]!);
        return;
      case 'stray key':
        await redis.del(this.keys[step.key]!);
        await redis.rpush(this.keys[step.key]!, 'stray');
        return;
      case 'lose field':
        await redis.hdel(this.keys['sale']!, step.field).catch(() => undefined);
        return;
      case 'lose stream':
        await redis.del(room.keys.stream(0));
        return;
      case 'made-up entry': {
        const fields = ['userId', this.user(step.n), 'voucherId', this.id, 'id', String((orders += 1))];
        await redis.xadd(room.keys.stream(0), '*', ...fields);
        return;
      }
      case 'reject without release': {
        const orderId = await this.held(step.n);
        if (orderId === null || !/^[1-9]\d*$/.test(orderId)) return;
        const order = { userId: this.user(step.n), orderId, voucherId: this.id };
        await room.orders.rejectOrder(0, order, 'DISCARDED', 'by a test');
        return;
      }
      case 'abandoned rebuild': {
        const state = await room.epochs.state(0);
        if (state.kind === 'OPEN') await room.repairs.begin(0, this.id, state.value, 'deadbeef');
        return;
      }
      case 'repair pass':
        await room.reconciliation.pass({ actor: 'test', pauseMs: 0, voucherIds: [this.id] });
        return;
    }
  }

  /** Passes and drains, as a quiet system makes them, until a look finds nothing. */
  async settle(): Promise<string[]> {
    let left: string[] = [];
    for (let round = 0; round < 6; round += 1) {
      await room.drain();
      const { after } = await room.reconciliation.pass({ actor: 'test', pauseMs: 0, voucherIds: [this.id] });
      left = after.findings.map(({ kind }) => kind);
      if (left.length === 0 && (await room.log.stats(0)).length === 0) break;
    }
    return left;
  }
}

describe('after any damage to the Redis keys of one voucher', () => {
  it('passes come to rest with stock + marks = units, a mark for each active row, no order twice, and rows within units', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(damage, { minLength: 1, maxLength: 14 }), async (steps) => {
        const voucher = new Voucher();
        await room.voucher(voucher.id, UNITS);
        await room.rebuilds.rebuildVoucher(voucher.id);
        for (const step of steps) await voucher.suffer(step);
        expect(await voucher.settle()).toEqual([]);
        const sale = await room.inBothStores(voucher.id);
        expect(disagreements(sale)).toEqual([]);
        expect(new Set(sale.orders.map((pair) => pair.split(':')[0])).size).toBe(sale.orders.length);
        const again = await room.reconciliation.pass({ actor: 'test', pauseMs: 0, voucherIds: [voucher.id] });
        expect(again.repairs).toEqual([]);
      }),
      { numRuns: 40 },
    );
  }, 180_000);
});
