import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { purchases, ReconciliationRoom } from '../test/support/reconciliation-room.js';
import { runAudit } from './audit-run.js';

let room: ReconciliationRoom;

beforeAll(async () => {
  room = await ReconciliationRoom.start();
  await room.onSale({ 100: 10, 101: 5 });
  await room.buy('100', purchases(4));
  await room.drain();
});
afterAll(async () => {
  await room.destroy();
});

async function audit(options: { repair?: boolean; json?: boolean } = {}, settings = room.settings) {
  const lines: string[] = [];
  const code = await runAudit(
    settings,
    { repair: false, json: false, colour: false, connectLimitMs: 3_000, ...options },
    (line) => lines.push(line),
  );
  return { code, lines, text: lines.join('\n') };
}

describe('the audit', () => {
  it('shows a tick per voucher and ends with 0 where the stores agree', async () => {
    const { code, lines } = await audit();
    expect(code).toBe(0);
    expect(lines).toContain('✓ voucher 100: units 10, left 6, marked buyers 4, orders 4, buyers in the stream 0');
    expect(lines.at(-1)).toMatch(/^✓ 2 vouchers in \d+\.\d s: Redis, stream and database agree$/);
  });

  it('names drift by voucher, user and order, repairs each once, and reports nothing at the second run', async () => {
    // By hand: a unit less, a made-up buyer, a lost row.
    await room.redis.decr(room.keys.stock(0, '101'));
    await room.redis.hset(room.keys.marks(0, '100'), '77', '7700');
    await room.sql.query('DELETE FROM tb_voucher_order WHERE user_id = 2');
    await room.sql.query('UPDATE tb_seckill_voucher SET stock = stock + 1 WHERE voucher_id = 100');
    const found = await audit();
    expect(found.code).toBe(1);
    expect(found.text).toMatch(/ENTRY_LOST voucher 100, user 77, order 7700: .+\n +--repair appends the entry again/);
    expect(found.text).toContain('ENTRY_LOST voucher 100, user 2, order 1000002');
    expect(found.text).toContain('COUNTER_DRIFT voucher 100: stock 6 + marks 5 differ from units 10');
    expect(found.text).toContain('COUNTER_DRIFT voucher 101: stock 4 + marks 0 differ from units 5');
    expect(found.lines.at(-1)).toMatch(/^✗ 2 vouchers .+: differences: 2 ENTRY_LOST, 2 COUNTER_DRIFT$/);

    const repaired = await audit({ repair: true });
    expect([repaired.code, repaired.lines.at(-1)]).toEqual([
      0,
      expect.stringMatching(/4 repaired: Redis, stream and database agree$/),
    ]);
    await room.drain();
    const again = await audit({ repair: true, json: true });
    expect(again.code).toBe(0);
    expect(JSON.parse(again.text)).toMatchObject({ agrees: true, repairs: [], before: { findings: [] } });
    expect(await room.inBothStores('100')).toMatchObject({ unitsLeft: 5, rows: 5, databaseStock: 5 });
  });

  it('names a closed partition, and opens it where it may repair', async () => {
    await room.redis.flushall();
    const found = await audit();
    expect([found.code, found.text]).toEqual([1, expect.stringContaining('PARTITION_CLOSED partition 0')]);
    const repaired = await audit({ repair: true });
    expect(repaired.code).toBe(0);
    expect(await room.buy('100', [{ userId: '1', orderId: '9' }])).toEqual(['DUPLICATE']);
  });

  it('ends with 1 where only an operator can mend', async () => {
    await room.sql.query('UPDATE tb_seckill_voucher SET stock = 0 WHERE voucher_id = 101');
    const { code, text } = await audit({ repair: true });
    expect([code, text]).toEqual([1, expect.stringContaining('RECORD_ALTERED voucher 101')]);
    await room.sql.query('UPDATE tb_seckill_voucher SET stock = 5 WHERE voucher_id = 101');
  });

  it('ends with 2 and the reason where it could not look', async () => {
    const away = { ...room.settings, redis: { ...room.settings.redis, url: 'redis://127.0.0.1:1' } };
    const { code, text } = await audit({}, away);
    expect([code, text]).toEqual([2, '✗ the audit could not look: Redis cannot be reached']);
  });
});
