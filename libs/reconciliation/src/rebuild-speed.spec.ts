import { afterAll, beforeAll, expect, it } from 'vitest';
import { ReconciliationRoom } from '../../../test/support/reconciliation-room.js';

const MARKS = 50_000;
let room: ReconciliationRoom;

beforeAll(async () => {
  room = await ReconciliationRoom.start();
  await room.voucher('100', MARKS + 10);
  await room.sql.query(
    `INSERT INTO tb_voucher_order (id, user_id, voucher_id) SELECT 10000000 + n, n, 100 FROM generate_series(1, $1::int) n`,
    [MARKS],
  );
  await room.sql.query('UPDATE tb_seckill_voucher SET stock = 10 WHERE voucher_id = 100');
});
afterAll(async () => {
  await room.destroy();
});

function show(what: string, ms: number): void {
  console.log(
    `${what}: ${MARKS} marks in ${Math.round(ms)} ms, ${((ms / MARKS) * 1_000).toFixed(1)} s per million marks`,
  );
}

it('rebuilds, opens and inspects any number of marks piece by piece, and prints the time per million', async () => {
  const empty = await room.rebuilds.rebuildPartition(0);
  expect(empty).toMatchObject({ outcome: 'OPENED', marks: MARKS, marksSet: MARKS });
  show('rebuild from the database alone', empty!.durationMs);
  const kept = await room.rebuilds.rebuildPartition(0);
  expect(kept).toMatchObject({ outcome: 'OPENED', marks: MARKS, marksSet: 0 });
  show('rebuild over marks that are there', kept!.durationMs);
  const inspection = await room.reconciliation.inspect();
  expect(inspection.findings).toEqual([]);
  show('inspection', inspection.durationMs);
  expect(await room.buy('100', [{ userId: '1', orderId: '5' }])).toEqual(['DUPLICATE']);
});
