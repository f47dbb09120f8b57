import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { HealthReport } from '#health';
import { type AppOptions, type RunningApp, startApp, whenReady } from '../support/app.js';
import { createTestDatabase, TestRedis } from '../support/services.js';
import { ADMIN, tokenOf } from '../support/tokens.js';

/** Nobody listens there. */
const NOWHERE = 'postgres://postgres:postgres@127.0.0.1:1/nothing';
const STREAM = 'stream.orders:{0}';

let redis: TestRedis;
let database: { url: string; destroy: () => Promise<void> };
let operator: Redis;
let running: RunningApp | undefined;

beforeAll(async () => {
  [redis, database] = await Promise.all([TestRedis.start(), createTestDatabase()]);
  operator = new Redis(redis.url);
  operator.on('error', () => undefined);
});
afterEach(async () => {
  await running?.close();
  running = undefined;
  await operator.flushall();
});
afterAll(async () => {
  operator.disconnect();
  await redis.destroy();
  await database.destroy();
});

async function start(options: Partial<AppOptions> = {}): Promise<RunningApp> {
  running = await startApp({ redisUrl: redis.url, databaseUrl: database.url, ...options });
  return running;
}
async function ask(path: string): Promise<{ status: number; report: HealthReport }> {
  const answer = await fetch(`${running?.url}${path}`);
  return { status: answer.status, report: (await answer.json()) as HealthReport };
}
const askUntil = (path: string, status: number) =>
  expect.poll(async () => (await ask(path)).status, { timeout: 20_000 }).toBe(status);

describe('a healthy product', () => {
  it('says so to all three questions, and names each part', async () => {
    const { url } = await start();
    await whenReady(url);
    await expect.poll(async () => (await ask('/health/ready')).report.status, { timeout: 20_000 }).toBe('ok');
    expect(await ask('/health/live')).toEqual({ status: 200, report: { status: 'ok', parts: {} } });
    const { report } = await ask('/health/ready');
    expect(report).toMatchObject({
      status: 'ok',
      parts: {
        redis: { status: 'ok' },
        epoch: { status: 'ok', partitions: [{ partition: 0, state: 'OPEN' }] },
        durability: { status: 'ok', level: 'always', mayEvict: false },
        database: { status: 'ok' },
        orders: { status: 'ok' },
      },
    });
    const orders = (await ask('/health/orders')).report;
    expect(Object.keys(orders.parts).sort()).toEqual(['consumer', 'database', 'stream']);
  });

  it('shows the stream in its metrics and to administrators only', async () => {
    const { url } = await start();
    await whenReady(url);
    await operator.xadd(STREAM, '*', 'nonsense', '1');
    await expect
      .poll(async () => (await fetch(`${url}/metrics`)).text(), { timeout: 20_000 })
      .toContain('seckill_dead_letters{partition="0"} 1');
    const metrics = await (await fetch(`${url}/metrics`)).text();
    for (const line of [
      /^seckill_stream_sampled 1$/m,
      /^seckill_stream_length\{partition="0"\} \d+$/m,
      /^seckill_build_info\{version="[\d.]+",node="v\d+/m,
      /^process_cpu_user_seconds_total /m,
    ])
      expect(metrics).toMatch(line);
    // Every figure that the alert rules and the autoscaler ask for is there under that name, and with those labels.
    const rules = readFileSync(join(import.meta.dirname, '../../deploy/prometheus/rules.yml'), 'utf8');
    const recorded = [...rules.matchAll(/record: (\S+)/g)].map(([, name]) => name);
    const asked = [...rules.matchAll(/expr: (.+)/g)]
      .flatMap(([, expr = '']) => [...expr.matchAll(/(seckill_[a-z_]+)(?:\{([a-z_]+))?/g)])
      .filter(([, name]) => !recorded.includes(name));
    expect(asked.length).toBeGreaterThan(8);
    const unheard = asked.filter(([, name, label]) =>
      label === undefined
        ? !new RegExp(`^# TYPE ${name} `, 'm').test(metrics)
        : !new RegExp(`^${name}\\{.*${label}="`, 'm').test(metrics),
    );
    expect(unheard.map(([text]) => text)).toEqual([]);
    const stream = (as?: string) =>
      fetch(`${url}/v1/admin/stream`, as === undefined ? {} : { headers: { authorization: `Bearer ${as}` } });
    expect([(await stream()).status, (await stream(tokenOf('5'))).status]).toEqual([401, 403]);
    expect(await (await stream(ADMIN)).json()).toEqual({
      partitions: [
        {
          partition: 0,
          length: expect.any(Number) as number,
          lag: 0,
          pending: 0,
          oldestPendingMs: null,
          oldestUndeliveredMs: null,
          consumers: [{ name: expect.any(String) as string, pending: 0, idleMs: expect.any(Number) as number }],
          deadLetters: 1,
        },
      ],
    });
  });
});

describe('a database that is away', () => {
  it('takes orders out, and the API not', async () => {
    // The partition is opened by another process, whose database is there.
    const other = await startApp({ redisUrl: redis.url, databaseUrl: database.url });
    await whenReady(other.url);
    await other.close();
    await start({ databaseUrl: NOWHERE });
    await askUntil('/health/ready', 200);
    const ready = (await ask('/health/ready')).report;
    expect(ready).toMatchObject({
      status: 'degraded',
      parts: { database: { status: 'degraded' }, epoch: { status: 'ok' } },
    });
    expect(await ask('/health/orders')).toMatchObject({
      status: 503,
      report: { parts: { database: { status: 'down' } } },
    });
    expect((await ask('/health/live')).status).toBe(200);
    expect(JSON.stringify(ready)).not.toContain('postgres:postgres');
  });
});

describe('a Redis', () => {
  it('that is frozen is told within seconds; the metrics come without the stream', async () => {
    const { url } = await start();
    await whenReady(url);
    redis.signal('SIGSTOP');
    try {
      expect(await ask('/health/ready')).toMatchObject({
        status: 503,
        report: { status: 'down', parts: { redis: { status: 'down' } } },
      });
      expect(await ask('/health/orders')).toMatchObject({
        status: 503,
        report: { parts: { stream: { status: 'down' } } },
      });
      const metrics = await (await fetch(`${url}/metrics`)).text();
      expect(metrics).toMatch(/^seckill_stream_sampled 0$/m);
      expect(metrics).not.toMatch(/^seckill_stream_length\{/m);
      const stream = await fetch(`${url}/v1/admin/stream`, { headers: { authorization: `Bearer ${ADMIN}` } });
      expect([stream.status, ((await stream.json()) as { code: string }).code]).toEqual([503, 'UNAVAILABLE']);
    } finally {
      redis.signal('SIGCONT');
    }
    await askUntil('/health/ready', 200);
  });

  it('that may evict keys is reported, and refused in production', async () => {
    await operator.config('SET', 'maxmemory-policy', 'allkeys-lru');
    try {
      const first = await start();
      await askUntil('/health/ready', 200);
      expect((await ask('/health/ready')).report.parts['durability']).toMatchObject({
        status: 'degraded',
        mayEvict: true,
      });
      await first.close();
      await start({ adjust: (settings) => ({ ...settings, mode: 'production' }) });
      await askUntil('/health/orders', 200);
      expect(await ask('/health/ready')).toMatchObject({
        status: 503,
        report: { parts: { durability: { status: 'down' } } },
      });
    } finally {
      await operator.config('SET', 'maxmemory-policy', 'noeviction');
    }
  });

  it('that does not write before it answers is reported as not durable', async () => {
    await operator.config('SET', 'appendfsync', 'everysec');
    try {
      await start();
      await askUntil('/health/ready', 200);
      expect(await ask('/health/ready')).toMatchObject({
        report: { status: 'degraded', parts: { durability: { level: 'everysec' } } },
      });
    } finally {
      await operator.config('SET', 'appendfsync', 'always');
    }
  });
});

describe('orders that do not move', () => {
  it('are told: nobody takes an old entry', async () => {
    await start({ env: { CONSUMER_ENABLED: 'false' } });
    await askUntil('/health/orders', 200);
    await operator.xgroup('CREATE', STREAM, 'g1', '0', 'MKSTREAM');
    await operator.xadd(STREAM, '1000-0', 'userId', '5', 'voucherId', '6', 'id', '7');
    const { status, report } = await ask('/health/orders');
    expect(status).toBe(503);
    expect(report.parts['stream']).toMatchObject({
      status: 'down',
      reason: expect.stringContaining('oldest undelivered entry') as string,
    });
    await operator.xreadgroup('GROUP', 'g1', 'ghost', 'STREAMS', STREAM, '>');
    expect((await ask('/health/orders')).report.parts['stream']).toMatchObject({
      status: 'down',
      reason: expect.stringContaining('oldest pending entry') as string,
    });
    await whenReady(running?.url ?? '');
    expect((await ask('/health/ready')).report.parts['orders']).toMatchObject({ status: 'degraded' });
  });

  it('are told: a foreign group holds back more than the backlog may be', async () => {
    const { url } = await start({ env: { MAX_BACKLOG: '2' } });
    await whenReady(url);
    await operator.xgroup('CREATE', STREAM, 'audit', '0', 'MKSTREAM');
    for (let i = 0; i < 3; i += 1) await operator.xadd(STREAM, '*', 'nonsense', '1');
    await askUntil('/health/orders', 503);
    expect((await ask('/health/orders')).report.parts['stream']).toMatchObject({
      reason: expect.stringMatching(/group audit holds back 3 entries/) as string,
    });
  });
});
