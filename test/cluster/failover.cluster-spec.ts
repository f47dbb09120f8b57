import type { Cluster } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/waiting.js';
import { startClusteredFleet } from './clustered-fleet.js';
import type { Fleet } from './fleet.js';
import type { RedisCluster } from './redis-cluster.js';

/** From the moment when a replica is attached again. */
const RESUME_LIMIT_MS = 10_000;
const WAIT_LIMIT_MS = 60_000;
const BUYERS = 32;
const PARTITIONS = [0, 1, 2, 3, 4, 5, 6, 7];

let cluster: RedisCluster;
let client: Cluster;
let fleet: Fleet;
let stop: () => Promise<void> = () => Promise.resolve();
/** Partition to slot. */
const slots = new Map<number, number>();
const slotOf = (partition: number) => slots.get(partition) as number;

beforeAll(async () => {
  ({ cluster, client, fleet, stop } = await startClusteredFleet());
  for (const partition of PARTITIONS)
    slots.set(partition, Number(await client.call('CLUSTER', 'KEYSLOT', `seckill:epoch:{${partition}}`)));
}, 240_000);
afterAll(() => stop(), 60_000);

/** The partitions that the server holds now. */
async function heldBy(port: number): Promise<number[]> {
  const held: number[] = [];
  for (const partition of PARTITIONS)
    if ((await cluster.ownerOf(slotOf(partition))).primary.port === port) held.push(partition);
  return held;
}

/** What must hold after every fault: nothing is lost, nobody bought twice, and the other slots did not notice. */
async function allHolds(affected: readonly number[], faultMs: number, endMs: number): Promise<void> {
  const others = fleet.partitionsBeside(affected);
  await fleet.calm();
  const troubled = fleet.troubled(others, faultMs, endMs);
  const told = troubled.map(
    ({ code, voucherId, sentAtMs }) => `${code} for voucher ${voucherId} after ${Math.round(sentAtMs - faultMs)} ms`,
  );
  expect(told).toEqual([]);
  const broken = await fleet.verdict();
  if (broken.length > 0) console.log(fleet.lastWords());
  expect(broken).toEqual([]);
}

describe.sequential('three primaries, three replicas, 8 partitions, ADMISSION_DURABILITY=replica', () => {
  it('sells 100 vouchers over all primaries', async () => {
    await fleet.openSales(100, 100_000);
    const owners = await Promise.all(
      PARTITIONS.map(async (each) => (await cluster.ownerOf(slotOf(each))).primary.port),
    );
    expect(new Set(owners).size).toBe(3);
    expect(new Set(fleet.vouchers.map(({ partition }) => partition))).toEqual(new Set(PARTITIONS));
    fleet.startLoad(BUYERS);
    await Promise.all(PARTITIONS.map((partition) => fleet.accepted(50, [partition])));
    expect(await fleet.verdict()).toEqual([]);
  }, 240_000);

  it('a primary killed under load: nothing accepted is lost, its slots resume, the others do not notice', async () => {
    fleet.startLoad(BUYERS);
    await fleet.accepted(200);
    const { primary } = await cluster.ownerOf(slotOf(3));
    const affected = await heldBy(primary.port);
    const faultMs = performance.now();
    const restarted = cluster.killAndRestart(primary);
    await until('the primary is down', () => !primary.isRunning, WAIT_LIMIT_MS);
    await cluster.untilReplicated(slotOf(3));
    const attachedMs = performance.now();
    const tookMs = await fleet.resumed(affected, attachedMs, WAIT_LIMIT_MS);
    console.log(
      `killed primary: replica attached after ${Math.round(attachedMs - faultMs)} ms, resumed ${tookMs} ms later`,
    );
    await restarted;
    await fleet.accepted(100, affected);
    await allHolds(affected, faultMs, performance.now());
    expect(tookMs).toBeLessThanOrEqual(RESUME_LIMIT_MS);
  }, 240_000);

  it('a primary frozen under load is followed to its successor, and comes back as a replica', async () => {
    fleet.startLoad(BUYERS);
    await fleet.accepted(200);
    const { primary } = await cluster.ownerOf(slotOf(1));
    const affected = await heldBy(primary.port);
    const faultMs = performance.now();
    primary.freeze();
    const others = cluster.anyServer([primary]);
    await until(
      'another primary holds the slot',
      async () => (await cluster.ownerOf(slotOf(1), others)).primary !== primary,
      WAIT_LIMIT_MS,
    );
    primary.thaw();
    await cluster.untilReplicated(slotOf(1));
    const attachedMs = performance.now();
    const tookMs = await fleet.resumed(affected, attachedMs, WAIT_LIMIT_MS);
    console.log(
      `frozen primary: replica attached after ${Math.round(attachedMs - faultMs)} ms, resumed ${tookMs} ms later`,
    );
    await fleet.accepted(100, affected);
    await allHolds(affected, faultMs, performance.now());
    expect(tookMs).toBeLessThanOrEqual(RESUME_LIMIT_MS);
  }, 240_000);

  it('a hot slot moved under load is followed, reconciled and opened where it is now', async () => {
    fleet.startLoad(BUYERS);
    await fleet.accepted(200);
    const { primary: from } = await cluster.ownerOf(slotOf(4));
    const { primary: to } = await cluster.ownerOf(slotOf(3));
    expect(to.port).not.toBe(from.port);
    const faultMs = performance.now();
    await cluster.moveSlot(slotOf(4), to);
    const movedMs = performance.now();
    expect((await cluster.ownerOf(slotOf(4))).primary.port).toBe(to.port);
    const tookMs = await fleet.resumed([4], movedMs, WAIT_LIMIT_MS);
    console.log(`moved slot: moving took ${Math.round(movedMs - faultMs)} ms, resumed ${tookMs} ms after it`);
    await fleet.accepted(50, [4]);
    await allHolds([4], faultMs, performance.now());
    expect(tookMs).toBeLessThanOrEqual(RESUME_LIMIT_MS);
  }, 240_000);

  it('an emptied script cache on single nodes is not noticed', async () => {
    fleet.startLoad(BUYERS);
    await fleet.accepted(100);
    const faultMs = performance.now();
    for (const server of cluster.servers) {
      await server.with((redis) => redis.script('FLUSH'));
      await fleet.accepted(50);
    }
    await allHolds([], faultMs, performance.now());
  }, 240_000);

  it('the audit finds both stores in agreement', async () => {
    const { code, words } = await fleet.audit();
    expect({ code, words: code === 0 ? '' : words }).toEqual({ code: 0, words: '' });
  }, 120_000);
});
