import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { readSettings } from '#config';
import { RedisConnections } from './index.js';
import { TestCluster } from '../../../test/support/cluster.js';

let cluster: TestCluster;
let connections: RedisConnections;
const within = { timeout: 15_000 };

beforeAll(async () => {
  cluster = await TestCluster.start();
});
afterEach(() => {
  connections.onApplicationShutdown();
});
afterAll(async () => {
  await cluster.destroy();
});

function open(nodes: readonly { host: string; port: number }[] = cluster.addresses): RedisConnections {
  const result = readSettings({
    REDIS_CLUSTER_NODES: nodes.map(({ host, port }) => `${host}:${port}`).join(','),
    DATABASE_URL: 'postgres://127.0.0.1:1/none',
    AUTH_JWT_SECRET: 'x'.repeat(32),
  });
  if (!result.ok) throw new Error(result.problems.join());
  return (connections = new RedisConnections(result.settings));
}

/** The connections of this name that one node serves. */
async function clientsNamed(node: Redis, name: string): Promise<number> {
  const list = String(await node.client('LIST'));
  return list.split('\n').filter((line) => line.includes(` name=${name} `)).length;
}

it('a blocking reader of a key is one connection, to the node that owns its slot', async () => {
  const slot = await cluster.slotOf('key-1');
  expect(await open().whenReady(10_000)).toBe(true);
  const blocking = connections.openBlocking('one-reader', 'key-1');
  await expect.poll(() => connections.isReady(blocking), within).toBe(true);
  expect(await blocking.set('key-1', 'here')).toBe('OK');
  const counts = await Promise.all(
    [0, 1, 2].map((at) => clientsNamed(cluster.firstOwnerOf(Math.ceil((at * 16_384) / 3)), 'one-reader')),
  );
  expect(counts.reduce((sum, each) => sum + each, 0)).toBe(1);
  expect(await clientsNamed(cluster.firstOwnerOf(slot), 'one-reader')).toBe(1);
});

it('a reader that is opened before the slot map is known finds the owner by what another node answers', async () => {
  const slot = await cluster.slotOf('key-2');
  const others = cluster.addresses.filter(({ port }) => port !== cluster.firstOwnerOf(slot).options.port);
  const blocking = open(others).openBlocking('early-reader', 'key-2');
  await expect.poll(() => blocking.set('key-2', 'found').catch((error: Error) => error.message), within).toBe('OK');
});

it('a reader follows its slot to another node, and is told while the key is on its way', async () => {
  const slot = await cluster.slotOf('key-3');
  expect(await open().whenReady(10_000)).toBe(true);
  const blocking = connections.openBlocking('moved-reader', 'key-3');
  await expect.poll(() => connections.isReady(blocking), within).toBe(true);
  await blocking.set('key-3', 'first');
  const move = await cluster.beginMove(slot);
  expect(await blocking.get('key-3')).toBe('first');
  await move.moveKeys();
  await expect(blocking.get('key-3')).rejects.toThrow(/^ASK /);
  expect(await connections.command.get('key-3')).toBe('first');
  await move.finish();
  await expect(blocking.get('key-3')).rejects.toThrow(/^MOVED /);
  await expect.poll(() => blocking.get('key-3').catch((error: Error) => error.message), within).toBe('first');
  expect(await clientsNamed(cluster.firstOwnerOf(slot), 'moved-reader')).toBe(0);
});
