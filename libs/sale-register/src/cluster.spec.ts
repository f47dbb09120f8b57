import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DurabilityProbe, LockService } from '#redis';
import { RegisterRig } from './test-support/register-rig.js';
import { TestCluster } from '../../../test/support/cluster.js';

const SLOTS = 16_384;
const PARTITIONS = Array.from({ length: 8 }, (_, partition) => partition);
let cluster: TestCluster;
let rig: RegisterRig;

beforeAll(async () => {
  cluster = await TestCluster.start();
  rig = await RegisterRig.connect({ clusterNodes: cluster.addresses });
});
afterAll(async () => {
  rig.close();
  await cluster.destroy();
});

const terms = { beginMs: 0, endMs: 9_000_000_000_000, units: 2, unitsVersion: 1 };

it('keeps all keys of a partition in one slot, and the partitions on more than one node', async () => {
  const slotsOf = (partition: number) => {
    const { sale, stock, marks } = rig.keys.saleKeys(partition, '17');
    const others = [rig.keys.epoch, rig.keys.stream, rig.keys.deadLetters, rig.keys.backlog].map((key) =>
      key.call(rig.keys, partition),
    );
    return Promise.all([sale, stock, marks, ...others].map((key) => rig.redis.call('CLUSTER', 'KEYSLOT', key)));
  };
  const slots = await Promise.all(PARTITIONS.map(slotsOf));
  for (const each of slots) expect(new Set(each).size).toBe(1);
  const owners = new Set(slots.map(([slot]) => Math.floor((Number(slot) * 3) / SLOTS)));
  expect(owners.size).toBeGreaterThan(1);
});

it('works through every script on every partition', async () => {
  for (const partition of PARTITIONS) {
    const epoch = await rig.openEpoch(partition);
    const voucherId = String(100 + partition);
    const order = { voucherId, userId: '1', orderId: '101' };
    expect(await rig.register.publish(partition, { ...terms, voucherId })).toEqual({ kind: 'PUBLISHED' });
    await rig.directory.record(voucherId, partition);
    await rig.log.ensureGroup(partition);
    expect(await rig.register.admit(partition, [order, { ...order, userId: '2', orderId: '102' }], 5000)).toMatchObject(
      [{ kind: 'ACCEPTED' }, { kind: 'ACCEPTED' }],
    );
    expect(await rig.register.restock(partition, { voucherId, units: 4, unitsVersion: 2 })).toMatchObject({
      kind: 'APPLIED',
    });
    const [first, second] = await rig.read('c', 2, partition);
    const letter = { entryId: first as string, cause: 'x', fields: {}, deliveries: 1, firstSeenMs: 1 };
    const dead = await rig.log.deadLetter(partition, letter);
    if (dead.kind !== 'WRITTEN') throw new Error(dead.kind);
    expect(await rig.log.redrive(partition, dead.id, order)).toMatchObject({ kind: 'REDRIVEN' });
    expect(await rig.log.acknowledge(partition, [second as string])).toEqual({ acknowledged: 1, trimmed: 2 });
    expect(await rig.register.release(partition, { ...order, userId: '2', orderId: '102' })).toBe('RELEASED');
    expect(await rig.rebuild.mark(partition, { ...order, userId: '3', orderId: '103' }, epoch)).toMatchObject({
      kind: 'MARKED',
    });
    expect(await rig.rebuild.remark(partition, { ...order, userId: '3', orderId: '104' }, '103', epoch)).toEqual({
      kind: 'REMARKED',
    });
    expect(await rig.rebuild.reappend(partition, order, epoch)).toMatchObject({ kind: 'APPENDED' });
    expect(await rig.rebuild.readmit(partition, { ...order, userId: '5', orderId: '105' })).toMatchObject({
      kind: 'READMITTED',
    });
    expect(await rig.rebuild.correctStock(partition, voucherId, 1, epoch)).toEqual({ kind: 'CHANGED', difference: 0 });
    await rig.rebuild.begin(partition, voucherId, epoch, 'token123');
    const mark = { userId: '6', expectedOrderId: undefined, orderId: '106' };
    expect(await rig.rebuild.writeMarks(partition, voucherId, epoch, 'token123', [mark])).toMatchObject({ written: 1 });
    expect(
      await rig.rebuild.finish(partition, { ...terms, voucherId, units: 9, unitsVersion: 3 }, epoch, 'token123'),
    ).toMatchObject({
      kind: 'FINISHED',
      unitsLeft: 5,
    });
    expect(await rig.log.stats(partition)).toMatchObject({ exists: true, pending: 0, deadLetters: 0, length: 3 });
    expect(await rig.register.readSale(partition, voucherId)).toMatchObject({
      kind: 'FOUND',
      sale: { marks: 4, unitsLeft: 5 },
    });
    expect(await rig.directory.partitionOf(voucherId)).toBe(partition);
  }
  expect((await rig.lease.lease('order', '2026:11:30', 10)).first).toBeGreaterThan(0);
});

it('locks, tells its durability, and survives an emptied script cache on every node', async () => {
  const locks = new LockService(rig.connections, rig.settings);
  const lock = await locks.tryAcquire('order:1', 5000);
  expect(lock).toBeDefined();
  expect(await locks.tryAcquire('order:1', 5000)).toBeUndefined();
  await lock?.release();
  expect(await new DurabilityProbe(rig.connections).read()).toMatchObject({
    level: 'always',
    mayEvict: false,
    replicas: 0,
  });
  for (const { url } of cluster.nodes) {
    const client = new Redis(url);
    await client.script('FLUSH');
    client.disconnect();
  }
  const outcomes = await Promise.all(
    PARTITIONS.map((partition) =>
      rig.register.admit(partition, [{ voucherId: String(100 + partition), userId: '9', orderId: '909' }], 5000),
    ),
  );
  expect(outcomes.flat().every(({ kind }) => kind === 'ACCEPTED')).toBe(true);
});

it('sells on while a slot is about to move and no key has moved: only a voucher that nobody has bought yet waits, and says so without effect', async () => {
  const fresh = { voucherId: '901', userId: '20', orderId: '920' };
  expect(await rig.register.publish(1, { ...terms, voucherId: fresh.voucherId })).toEqual({ kind: 'PUBLISHED' });
  await rig.register.restock(1, { voucherId: '101', units: 20, unitsVersion: 4 });
  const move = await cluster.beginMove(await cluster.slotOf(rig.keys.epoch(1)));
  const sold = (user: string) => ({ voucherId: '101', userId: user, orderId: `9${user}` });
  expect(await rig.register.admit(1, [sold('30')], 5000)).toEqual([{ kind: 'ACCEPTED', orderId: '930' }]);
  expect(await rig.register.admit(1, [fresh, sold('31'), { ...fresh, userId: '21', orderId: '921' }], 5000)).toEqual([
    { kind: 'UNAVAILABLE', reason: 'SERVER_STATE' },
    { kind: 'ACCEPTED', orderId: '931' },
    { kind: 'UNAVAILABLE', reason: 'SERVER_STATE' },
  ]);
  await move.callOff();
  expect(await rig.register.admit(1, [fresh], 5000)).toEqual([{ kind: 'ACCEPTED', orderId: '920' }]);
  expect(await rig.register.readSale(1, fresh.voucherId)).toMatchObject({ sale: { marks: 1, unitsLeft: 1 } });
});

it('follows a slot that moved to another node', async () => {
  const barrier = await RegisterRig.connect({ clusterNodes: cluster.addresses, durability: 'replica' });
  const held = { voucherId: '100', userId: '9', orderId: '911' };
  // No replica here: the pipeline of script and WAIT runs on the slot's node, and what is not confirmed is not said.
  expect(await barrier.register.admit(0, [held], 5000)).toEqual([{ kind: 'OUTCOME_UNKNOWN', candidateOrderId: '909' }]);
  const move = await cluster.beginMove(await cluster.slotOf(rig.keys.epoch(0)));
  await move.moveKeys();
  await move.finish();
  const request = { voucherId: '100', userId: '10', orderId: '910' };
  // The slot's new node has a data history of its own: admission is closed until the partition is reconciled there.
  expect(await rig.register.admit(0, [request], 5000)).toEqual([{ kind: 'UNAVAILABLE', reason: 'EPOCH' }]);
  expect(await barrier.register.admit(0, [held], 5000)).toEqual([{ kind: 'UNAVAILABLE', reason: 'EPOCH' }]);
  barrier.close();
  await rig.openEpoch(0);
  expect(await rig.register.admit(0, [request], 5000)).toEqual([{ kind: 'ACCEPTED', orderId: '910' }]);
});
