import type { Cluster } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startClusteredFleet } from './clustered-fleet.js';
import type { Fleet, FleetVoucher } from './fleet.js';
import type { RedisCluster } from './redis-cluster.js';

const MARKS = 1_000_000;
const UNITS = 2_000_000;
const MARKS_PER_CALL = 2_500;
/** A server that moves a hash of a million fields is silent for seconds. */
const NODE_TIMEOUT_MS = 30_000;
const REOPEN_LIMIT_MS = 300_000;
const FIRST_USER = 100_000_000;
const FIRST_ORDER = 2_000_000_000_000;

let cluster: RedisCluster;
let client: Cluster;
let fleet: Fleet;
let stop: () => Promise<void> = () => Promise.resolve();

beforeAll(async () => {
  ({ cluster, client, fleet, stop } = await startClusteredFleet(NODE_TIMEOUT_MS));
}, 240_000);
afterAll(() => stop(), 60_000);

/** Stores a million orders in both stores as if they had been bought: the rows in one transaction, the marks with their units, piece by piece. */
async function sellMillion({ voucherId, partition }: FleetVoucher): Promise<void> {
  await fleet.postgres.query(`
    WITH stored AS (
      INSERT INTO tb_voucher_order (id, user_id, voucher_id)
      SELECT ${FIRST_ORDER} + n, ${FIRST_USER} + n, ${voucherId} FROM generate_series(0, ${MARKS - 1}) AS n RETURNING 1)
    UPDATE tb_seckill_voucher SET stock = stock - (SELECT count(*) FROM stored) WHERE voucher_id = ${voucherId}`);
  const keys = [`seckill:order:{${partition}}:${voucherId}`, `seckill:stock:{${partition}}:${voucherId}`];
  const script = `redis.call('HSET', KEYS[1], unpack(ARGV)) return redis.call('DECRBY', KEYS[2], #ARGV / 2)`;
  for (let at = 0; at < MARKS; at += MARKS_PER_CALL) {
    const marks = Array.from({ length: MARKS_PER_CALL }, (_, nth) => [
      FIRST_USER + at + nth,
      FIRST_ORDER + at + nth,
    ]).flat();
    await client.eval(script, 2, ...keys, ...marks);
  }
}

it('a slot with a million marks is moved, reconciled and opened; the time is printed', async () => {
  await fleet.openSales(16, UNITS);
  const large = fleet.vouchers[0] as FleetVoucher;
  const { partition } = large;
  await sellMillion(large);
  const slot = Number(await client.call('CLUSTER', 'KEYSLOT', `seckill:epoch:{${partition}}`));
  const { primary: from } = await cluster.ownerOf(slot);
  const { primary: to } = await cluster.ownerOf((slot + 8_192) % 16_384);
  expect(to.port).not.toBe(from.port);
  fleet.startLoad(8);
  await fleet.accepted(20, [partition]);
  const beganMs = performance.now();
  await cluster.moveSlot(slot, to);
  const movedMs = performance.now();
  const tookMs = await fleet.resumed([partition], movedMs, REOPEN_LIMIT_MS);
  console.log(
    `moved slot with ${MARKS} marks: moving took ${Math.round(movedMs - beganMs)} ms, reconciled and open ${tookMs} ms after it`,
  );
  await fleet.calm();
  expect((await cluster.ownerOf(slot)).primary.port).toBe(to.port);
  const marks = Number(await client.hlen(`seckill:order:{${partition}}:${large.voucherId}`));
  const [stock, units] = await Promise.all([
    client.get(`seckill:stock:{${partition}}:${large.voucherId}`),
    client.hget(`seckill:sale:{${partition}}:${large.voucherId}`, 'units'),
  ]);
  expect(marks).toBeGreaterThanOrEqual(MARKS);
  expect(marks + Number(stock)).toBe(Number(units));
}, 600_000);
