import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { readSettings } from '#config';
import { DurabilityProbe, RedisConnections } from '#redis';
import { EpochRegister, KeySpace } from '#sale-register';
import { TestRedis } from '../../../test/support/services.js';
import { TEST_SECRET } from '../../../test/support/tokens.js';
import { DurabilityWatch } from './durability-watch.js';

let redis: TestRedis;
let connections: RedisConnections;
let probe: DurabilityProbe;
let epochs: EpochRegister;
let watch: DurabilityWatch;

beforeAll(async () => {
  redis = await TestRedis.start();
  const read = readSettings({
    REDIS_URL: redis.url,
    DATABASE_URL: 'postgres://127.0.0.1/x',
    AUTH_JWT_SECRET: TEST_SECRET,
  });
  if (!read.ok) throw new Error(read.problems.join('; '));
  connections = new RedisConnections(read.settings);
  probe = new DurabilityProbe(connections);
  epochs = new EpochRegister(connections, new KeySpace(read.settings));
  watch = new DurabilityWatch(probe, connections, epochs);
  watch.onModuleInit();
});

afterAll(async () => {
  watch.onModuleDestroy();
  connections.onApplicationShutdown();
  await redis.destroy();
});

async function configure(...settings: [string, string][]): Promise<void> {
  const operator = new Redis(redis.url);
  for (const [name, value] of settings) await operator.config('SET', name, value);
  operator.disconnect();
}

it('knows how durable Redis is as soon as it is connected, without being asked', async () => {
  await vi.waitFor(() => expect(probe.last).toMatchObject({ level: 'always', mayEvict: false }));
});

it('looks again when an epoch is found closed', async () => {
  await configure(['appendfsync', 'everysec'], ['maxmemory-policy', 'allkeys-lru']);
  epochs.requestRebuild(0, undefined, 'EPOCH');
  await vi.waitFor(() => expect(probe.last).toMatchObject({ level: 'everysec', mayEvict: true }));
});

it('looks again when the connection is back', async () => {
  await redis.down();
  // Started again, the server has the settings of its command line.
  await redis.up();
  await vi.waitFor(() => expect(probe.last).toMatchObject({ level: 'always', mayEvict: false }));
});
