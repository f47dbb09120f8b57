import { Agent, request } from 'node:http';
import { createServer } from 'node:net';
import { connect } from 'node:net';
import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { freePort } from '../../scripts/services/free-port.mjs';
import { createTestDatabase, TestRedis } from '../support/services.js';
import { ProductProcess } from '../support/product-process.js';
import { SilentServer } from '../support/silent-server.js';
import { ADMIN, tokenOf } from '../support/tokens.js';

// Processes start and end for real; on a busy machine each takes its time.
vi.setConfig({ testTimeout: 120_000 });

const started: ProductProcess[] = [];
async function start(name: 'seckill' | 'worker', env: Record<string, string>): Promise<ProductProcess> {
  const product = await ProductProcess.spawn(name, { SHUTDOWN_TIMEOUT_MS: '5000', ...env });
  started.push(product);
  return product;
}

let redis: TestRedis;
let database: { url: string; destroy: () => Promise<void> };
let stores: Record<string, string>;
beforeAll(async () => {
  [redis, database] = await Promise.all([TestRedis.start(), createTestDatabase()]);
  stores = { REDIS_URL: redis.url, DATABASE_URL: database.url };
});
afterEach(async () => {
  await Promise.all(started.splice(0).map((product) => product.destroy()));
});
afterAll(async () => {
  await redis.destroy();
  await database.destroy();
});

async function voucherOnSale(product: ProductProcess, stock: number): Promise<string> {
  const answer = await fetch(`${product.url}/v1/vouchers`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      shopId: '1',
      title: 'Process',
      payValue: 1,
      actualValue: 2,
      stock,
      beginTime: '2026-01-01T00:00:00Z',
      endTime: '2099-01-01T00:00:00Z',
    }),
  });
  expect(answer.status).toBe(201);
  return ((await answer.json()) as { voucherId: string }).voucherId;
}
const buy = (product: ProductProcess, voucherId: string, userId: string) =>
  fetch(`${product.url}/v1/vouchers/${voucherId}/orders`, {
    method: 'POST',
    headers: { authorization: `Bearer ${tokenOf(userId)}` },
  });

describe('a process that cannot start', () => {
  it('names every bad setting, and ends with a code that is not 0', async () => {
    const product = await start('seckill', { PORT: 'abc', DB_POOL_SIZE: '0', REDIS_URL: '', AUTH_JWT_SECRET: 'hush' });
    expect((await product.ended).code).toBe(1);
    for (const name of ['PORT', 'DB_POOL_SIZE', 'REDIS_URL'])
      expect(product.output).toMatch(new RegExp(`^ {2}${name} must`, 'm'));
    expect(product.output).not.toContain('hush');
  });
  it('names the port that is taken', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as { port: number };
    const product = await start('seckill', { ...stores, PORT: String(port) });
    expect((await product.ended).code).toBe(1);
    expect(product.output).toMatch(new RegExp(`port ${port} on 127.0.0.1 is taken`));
    other.close();
  });
});

describe('a process without its stores', () => {
  it('listens, is alive and not ready, refuses purchases as unavailable, and ends in time', async () => {
    const product = await start('seckill', {
      REDIS_URL: 'redis://127.0.0.1:1',
      DATABASE_URL: 'postgres://u:hush@127.0.0.1:1/d',
    });
    await product.until('/health/live', 200);
    expect(await (await product.until('/health/ready', 503)).json()).toMatchObject({
      parts: { redis: { status: 'down' } },
    });
    await product.until('/health/orders', 503);
    const answer = await buy(product, '1', '5');
    expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([503, 'UNAVAILABLE']);
    product.signal('SIGTERM');
    expect(await product.ended).toMatchObject({ code: 0 });
    expect(product.output).not.toContain('hush');
  });

  it('becomes ready by itself when they come', async () => {
    const late = await TestRedis.start();
    await late.down();
    const product = await start('seckill', { ...stores, REDIS_URL: late.url });
    await product.until('/health/ready', 503);
    await late.up();
    await product.until('/health/ready', 200);
    product.signal('SIGTERM');
    expect(await product.ended).toMatchObject({ code: 0 });
    await late.destroy();
  });

  it('that never answer ends in time all the same', async () => {
    const silent = await SilentServer.start();
    const product = await start('seckill', {
      REDIS_URL: `redis://127.0.0.1:${silent.port}`,
      DATABASE_URL: `postgres://u:p@127.0.0.1:${silent.port}/d`,
    });
    await product.until('/health/live', 200);
    await product.until('/health/ready', 503);
    product.signal('SIGTERM');
    const end = await product.ended;
    expect(end).toMatchObject({ code: 0 });
    expect(end.afterMs).toBeLessThan(5000);
    await silent.stop();
  });

  it('of which Redis froze in mid-life ends in time', async () => {
    const frozen = await TestRedis.start();
    const product = await start('seckill', { ...stores, REDIS_URL: frozen.url });
    await product.until('/health/ready', 200);
    frozen.signal('SIGSTOP');
    product.signal('SIGTERM');
    const end = await product.ended;
    expect(end).toMatchObject({ code: 0 });
    expect(end.afterMs).toBeLessThan(5000);
    await frozen.destroy();
  });
});

describe('SIGTERM', () => {
  it('does not wait for the block of an idle consumer', async () => {
    const product = await start('seckill', { ...stores, CONSUMER_BLOCK_MS: '60000' });
    await product.until('/health/ready', 200);
    product.signal('SIGTERM');
    const end = await product.ended;
    expect(end).toMatchObject({ code: 0 });
    expect(end.afterMs).toBeLessThan(5000);
  });

  it('does not wait for clients that keep their connections open, or that never finish a request', async () => {
    const product = await start('seckill', stores);
    await product.until('/health/live', 200);
    const idle = connect(product.port, '127.0.0.1', () => idle.write('GET /health/live HTTP/1.1\r\nhost: a\r\n\r\n'));
    await once(idle, 'data');
    const half = connect(product.port, '127.0.0.1', () => half.write('POST /v1/vouchers HTTP/1.1\r\nhost: a\r\n'));
    await once(half, 'connect');
    for (const socket of [idle, half]) socket.on('error', () => undefined);
    product.signal('SIGTERM');
    const end = await product.ended;
    expect(end).toMatchObject({ code: 0 });
    expect(end.afterMs).toBeLessThan(5000);
    for (const socket of [idle, half]) socket.destroy();
  });

  it('under load: whoever got an answer got the truth, nobody a broken one, and every accepted order is stored in the end', async () => {
    const product = await start('seckill', stores);
    await product.until('/health/ready', 200);
    await product.until('/health/orders', 200);
    const voucherId = await voucherOnSale(product, 10_000_000);
    const load = new KeepAliveLoad(product.port, voucherId);
    await load.run(64, async () => {
      await expect.poll(() => load.accepted.size, { timeout: 20_000 }).toBeGreaterThan(200);
      product.signal('SIGTERM');
      expect(await product.ended).toMatchObject({ code: 0 });
    });
    // After the end a connection is refused or cut; before it, every answer is a whole one that a client can act on.
    expect(load.odd).toEqual([]);
    const next = await start('seckill', { ...stores, CLAIM_MIN_IDLE_MS: '2000' });
    await next.until('/health/ready', 200);
    for (const [userId, orderId] of load.accepted) {
      const seen = await fetch(`${next.url}/v1/vouchers/${voucherId}/orders/${orderId}`, {
        headers: { authorization: `Bearer ${tokenOf(userId)}` },
      });
      expect([seen.status, userId]).toEqual([200, userId]);
    }
    await expect
      .poll(
        async () => {
          const stream = await fetch(`${next.url}/v1/admin/stream`, { headers: { authorization: `Bearer ${ADMIN}` } });
          const { partitions } = (await stream.json()) as {
            partitions: { lag: number; pending: number; deadLetters: number }[];
          };
          return partitions.map(({ lag, pending, deadLetters }) => ({ lag, pending, deadLetters }));
        },
        { timeout: 30_000 },
      )
      .toEqual([{ lag: 0, pending: 0, deadLetters: 0 }]);
  });

  it('twice within a moment (a terminal’s Ctrl-C) still ends in peace', async () => {
    const product = await start('seckill', stores);
    await product.until('/health/ready', 200);
    product.signal('SIGINT');
    product.signal('SIGINT');
    expect(await product.ended).toMatchObject({ code: 0 });
  });

  it('right after the start ends the process too', async () => {
    const product = await start('seckill', stores);
    await expect.poll(() => product.output, { timeout: 20_000 }).toContain('LOG_LEVEL');
    product.signal('SIGTERM');
    const end = await product.ended;
    expect(end.code ?? end.signal).toSatisfy((how: unknown) => how === 0 || how === 'SIGTERM');
  });
});

describe('a worker', () => {
  it('stores what an API without a consumer accepts; its readiness is that orders move', async () => {
    const api = await start('seckill', { ...stores, CONSUMER_ENABLED: 'false' });
    await api.until('/health/ready', 200);
    const worker = await start('worker', { ...stores, CONSUMER_BLOCK_MS: '100' });
    const { parts } = (await (await worker.until('/health/ready', 200)).json()) as { parts: object };
    expect(Object.keys(parts).sort()).toEqual(['consumer', 'database', 'stream']);
    await api.until('/health/orders', 200);
    const voucherId = await voucherOnSale(api, 1);
    const bought = (await (await buy(api, voucherId, '77')).json()) as { orderId: string };
    await expect
      .poll(
        async () => {
          const seen = await fetch(`${api.url}/v1/vouchers/${voucherId}/orders/${bought.orderId}`, {
            headers: { authorization: `Bearer ${tokenOf('77')}` },
          });
          return ((await seen.json()) as { status: string }).status;
        },
        { timeout: 20_000 },
      )
      .toBe('UNPAID');
    expect(await (await worker.until('/metrics', 200)).text()).toMatch(/^seckill_orders_stored_total 1$/m);
    expect((await fetch(`${worker.url}/v1/vouchers?shopId=1`)).status).toBe(404);
    worker.signal('SIGTERM');
    expect(await worker.ended).toMatchObject({ code: 0 });
  });

  it('needs no way to check tokens, and is not ready while the database is away', async () => {
    const port = await freePort();
    const worker = await start('worker', {
      ...stores,
      AUTH_JWT_SECRET: 'x',
      PORT: String(port),
      DATABASE_URL: 'postgres://u:p@127.0.0.1:1/d',
    });
    expect(await (await worker.until('/health/ready', 503)).json()).toMatchObject({
      parts: { database: { status: 'down' } },
    });
  });
});

/** Buyers on keep-alive connections, each a new user as soon as the one before was answered, until the server is gone. */
class KeepAliveLoad {
  readonly accepted = new Map<string, string>();
  readonly odd: string[] = [];
  private users = 1_000;

  constructor(
    private readonly port: number,
    private readonly voucherId: string,
  ) {}

  async run(connections: number, meanwhile: () => Promise<void>): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: connections });
    const buyers = Array.from({ length: connections }, () => this.buyUntilGone(agent));
    await meanwhile();
    await Promise.all(buyers);
    agent.destroy();
  }

  private async buyUntilGone(agent: Agent): Promise<void> {
    for (;;) {
      const userId = String((this.users += 1));
      const answer = await this.buy(agent, userId);
      if (answer === 'GONE') return;
      const body = JSON.parse(answer.text) as { orderId?: string; code?: string };
      if (answer.status === 202) this.accepted.set(userId, body.orderId ?? '');
      else if (answer.status !== 503) this.odd.push(`${answer.status} ${answer.text}`);
    }
  }

  private buy(agent: Agent, userId: string): Promise<{ status: number; text: string } | 'GONE'> {
    return new Promise((resolve) => {
      const sent = request(
        {
          port: this.port,
          host: '127.0.0.1',
          method: 'POST',
          path: `/v1/vouchers/${this.voucherId}/orders`,
          agent,
          headers: { authorization: `Bearer ${tokenOf(userId)}` },
        },
        (response) => {
          let text = '';
          response.on('data', (data: Buffer) => (text += data.toString()));
          response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
          response.on('error', () => {
            this.odd.push(`an answer broke off: ${text}`);
            resolve('GONE');
          });
        },
      );
      sent.on('error', () => resolve('GONE'));
      sent.end();
    });
  }
}
