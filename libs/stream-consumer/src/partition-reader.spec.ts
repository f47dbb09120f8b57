import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import type { OrderRepository } from '#orders';
import { PartitionReader } from './partition-reader.js';
import { RegisterRig } from '../../sale-register/src/test-support/register-rig.js';
import { TestCluster } from '../../../test/support/cluster.js';

let cluster: TestCluster;
let rig: RegisterRig;
let reader: PartitionReader;
let bought = 0;

beforeAll(async () => {
  cluster = await TestCluster.start();
  rig = await RegisterRig.connect({ clusterNodes: cluster.addresses });
  await rig.openEpoch();
  await rig.publish('7', 1_000);
  // The number of the record's epoch is all that a reader asks of it.
  const orders = { epochNumber: () => Promise.resolve(1) } as unknown as OrderRepository;
  reader = new PartitionReader(
    { connections: rig.connections, keys: rig.keys, log: rig.log, orders },
    { partition: 0, name: 'reader', batchSize: 100, blockMs: 10_000, claimMinIdleMs: 60_000 },
  );
});
afterAll(async () => {
  reader.close();
  rig.close();
  await cluster.destroy();
});

async function append(): Promise<string> {
  bought += 1;
  const orderId = String(1_000 + bought);
  const fields = ['userId', String(bought), 'voucherId', '7', 'id', orderId] as const;
  await rig.redis.xadd(rig.keys.stream(0), '*', ...fields);
  return orderId;
}

/** Order ids of what is read next, as a waiting loop would; fails of reads while the connection is being led elsewhere are passed over. */
async function readOrders(): Promise<string[]> {
  const seen: string[] = [];
  await expect
    .poll(
      async () => {
        const read = await reader.read(true).catch(() => undefined);
        for (const { fields } of read?.entries ?? []) seen.push(String(fields?.['id']));
        return seen.length;
      },
      { timeout: 20_000, interval: 10 },
    )
    .toBeGreaterThan(0);
  return [...new Set(seen)];
}

it('reads on while its stream is on the way to another node, without an error, and from there when it has arrived', async () => {
  const first = await append();
  expect(await readOrders()).toEqual([first]);
  const slot = await cluster.slotOf(rig.keys.stream(0));
  const move = await cluster.beginMove(slot);
  await move.moveKeys();
  const onTheWay = await append();
  const calls = vi.spyOn(rig.redis, 'call');
  // No read throws here: whoever would count failures sees none. So many that the reader tries its own connection again and again.
  const seen: string[] = [];
  for (let reads = 0; reads < 40; reads += 1) {
    const { entries } = await reader.read(true);
    seen.push(...entries.map(({ fields }) => String(fields?.['id'])));
  }
  expect(seen).toContain(onTheWay);
  const overCommand = calls.mock.calls.filter(([command]) => command === 'xreadgroup');
  expect(overCommand.length).toBeGreaterThan(20);
  // A read that waits would hold up every other command of the process.
  expect(overCommand.filter((call) => call.includes('BLOCK'))).toEqual([]);
  calls.mockRestore();
  await move.finish();
  const arrived = await append();
  for (let reads = 0; reads < 200 && !seen.includes(arrived); reads += 1) seen.push(...(await readOrders()));
  expect(seen).toContain(arrived);
});
