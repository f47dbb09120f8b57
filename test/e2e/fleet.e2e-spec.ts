import { once } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { createServer } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { ProductProcess } from '../support/product-process.js';
import { createTestDatabase, TestRedis } from '../support/services.js';
import { ADMIN, tokenOf } from '../support/tokens.js';

// Processes start and end for real; on a busy machine each takes its time.
vi.setConfig({ testTimeout: 120_000 });
const LIMIT = { timeout: 60_000 };

/** Several API processes behind one port, and the one that supervises them. */
class Fleet {
  constructor(readonly product: ProductProcess) {}

  /** Resolves when all serve. */
  static async serving(size: number, env: Record<string, string> = {}): Promise<Fleet> {
    const fleet = new Fleet(await start({ API_PROCESSES: String(size), ...env }));
    await fleet.product.until('/health/ready', 200, 60_000);
    await expect.poll(() => fleet.product.output, LIMIT).toContain(`${size} processes serve on ${fleet.product.url}`);
    return fleet;
  }

  /** The processes that serve: the living children of the supervising one. */
  members(): number[] {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name) && parentOf(name) === this.product.child.pid)
      .map(Number);
  }

  async metric(name: string): Promise<number> {
    // A connection on its way to a frozen process is answered by nobody.
    const text = await fetch(`${this.product.url}/metrics`, { signal: AbortSignal.timeout(5000) })
      .then((answer) => answer.text())
      .catch(() => '');
    const lines = [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'gm'))];
    return lines.reduce((sum, [, value]) => sum + Number(value), 0);
  }
}

/** The parent of a living process; undefined for one that is gone, or has ended and was not fetched yet. */
function parentOf(pid: string | number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return state === 'Z' ? undefined : Number(parent);
  } catch {
    return undefined;
  }
}

const started: ProductProcess[] = [];
async function start(env: Record<string, string>): Promise<ProductProcess> {
  const product = await ProductProcess.spawn('seckill', { ...stores, SHUTDOWN_TIMEOUT_MS: '5000', ...env });
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

async function voucherOnSale({ url }: ProductProcess, stock: number): Promise<string> {
  const answer = await fetch(`${url}/v1/vouchers`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      shopId: '1',
      title: 'Fleet',
      payValue: 1,
      actualValue: 2,
      stock,
      beginTime: '2026-01-01T00:00:00Z',
      endTime: '2099-01-01T00:00:00Z',
    }),
  });
  expect(answer.status).toBe(201);
  const { voucherId } = (await answer.json()) as { voucherId: string };
  await expect
    .poll(async () => (await (await fetch(`${url}/v1/vouchers/${voucherId}`)).json()) as object, LIMIT)
    .toMatchObject({ unitsLeft: stock });
  return voucherId;
}

/** One client's connection, kept open; each request says whether it was answered or the connection was cut. */
class Client {
  private readonly agent = new Agent({ keepAlive: true, maxSockets: 1 });

  constructor(private readonly port: number) {}

  send(method: string, path: string, token?: string): Promise<{ status: number; body: string } | 'CUT'> {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    return new Promise((resolve) => {
      const sent = request(
        { host: '127.0.0.1', port: this.port, agent: this.agent, method, path, headers },
        (answer) => {
          let body = '';
          answer.on('data', (data: Buffer) => (body += data.toString()));
          answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body }));
          answer.on('error', () => resolve('CUT'));
        },
      );
      sent.on('error', () => resolve('CUT'));
      sent.end();
    });
  }

  close(): void {
    this.agent.destroy();
  }
}

describe('several processes behind one port', () => {
  it('sell every unit once, and their metrics are the sum of what they did', async () => {
    const fleet = await Fleet.serving(2);
    const { product } = fleet;
    const voucherId = await voucherOnSale(product, 100);
    const clients = Array.from({ length: 16 }, () => new Client(product.port));
    const answers = await Promise.all(
      clients.flatMap((client, c) =>
        Array.from({ length: 50 }, (_, n) => {
          // Every tenth request is a repeat of the buyer before.
          const userId = String(10_000 + c * 100 + (n % 10 === 9 ? n - 1 : n));
          return client.send('POST', `/v1/vouchers/${voucherId}/orders`, tokenOf(userId));
        }),
      ),
    );
    const statuses = answers.map((answer) => (answer === 'CUT' ? 'CUT' : answer.status));
    expect(statuses.filter((status) => status === 202)).toHaveLength(100);
    expect(new Set(statuses)).toEqual(new Set([202, 409]));
    // Each process told what it did, and only that.
    await expect.poll(() => fleet.metric('seckill_admissions_total'), LIMIT).toBe(800);
    await expect.poll(() => fleet.metric('seckill_orders_stored_total'), LIMIT).toBe(100);
    // What they share is told once.
    expect(await fleet.metric('seckill_processes')).toBe(2);
    for (const shared of ['seckill_stream_sampled', 'seckill_build_info', 'seckill_redis_durability_info'])
      expect([shared, await fleet.metric(shared)]).toEqual([shared, 1]);
    expect(await fleet.metric('seckill_stream_consumers')).toBe(2);
    for (const client of clients) client.close();
  });

  it('share clients that keep their connections evenly; when one is killed the others go on, it is replaced, and no count falls', async () => {
    const fleet = await Fleet.serving(2);
    const { product } = fleet;
    const voucherId = await voucherOnSale(product, 1);
    const clients = Array.from({ length: 8 }, () => new Client(product.port));
    const ask = (round: number) =>
      Promise.all(
        clients.map((client, c) => client.send('POST', `/v1/vouchers/${voucherId}/orders`, tokenOf(`${round}${c}`))),
      );
    // One after the other: each connection goes to the next process.
    for (const client of clients) expect(await client.send('GET', '/health/live')).toMatchObject({ status: 200 });
    expect(await ask(1)).not.toContain('CUT');
    await expect.poll(() => fleet.metric('seckill_admissions_total'), LIMIT).toBe(8);

    const [victim, survivor] = fleet.members() as [number, number];
    process.kill(victim, 'SIGSTOP');
    const answers = ask(2);
    // The frozen one does not answer for its figures: it is counted, and what it told before is not forgotten.
    await expect.poll(() => fleet.metric('seckill_admissions_total'), LIMIT).toBe(12);
    expect(await fleet.metric('seckill_processes_silent_total')).toBeGreaterThan(0);
    expect(await fleet.metric('seckill_processes')).toBe(1);
    process.kill(victim, 'SIGKILL');
    const cut = (await answers).filter((answer) => answer === 'CUT');
    expect(cut).toHaveLength(4);

    expect(await ask(3)).not.toContain('CUT');
    await expect.poll(() => fleet.metric('seckill_processes'), LIMIT).toBe(2);
    expect(fleet.members()).toContain(survivor);
    expect(fleet.members()).not.toContain(victim);
    expect(await fleet.metric('seckill_processes_replaced_total')).toBe(1);
    expect(await fleet.metric('seckill_admissions_total')).toBe(20);
    expect(product.output).toMatch(new RegExp(`pid ${victim}\\) ended by itself: SIGKILL; another one starts`));
    for (const client of clients) client.close();
  });

  it('end all on SIGTERM, within their time, idle clients or not; the code is 0', async () => {
    const fleet = await Fleet.serving(3, { CONSUMER_BLOCK_MS: '60000', CONSUMER_NAME: 'drain' });
    for (const number of [1, 2, 3]) expect(fleet.product.output).toContain(`consumer drain-${number} started`);
    const idle = new Client(fleet.product.port);
    await idle.send('GET', '/health/live');
    const members = fleet.members();
    expect(members).toHaveLength(3);
    fleet.product.signal('SIGTERM');
    const end = await fleet.product.ended;
    expect(end).toMatchObject({ code: 0 });
    expect(end.afterMs).toBeLessThan(5000);
    for (const pid of members) {
      expect(parentOf(pid)).toBeUndefined();
      expect(fleet.product.output).toMatch(new RegExp(`"pid":${pid},"context":"Process","msg":"stopped"`));
    }
    idle.close();
  });

  it('do not outlive the supervising process: what is in hand is finished, then they end', async () => {
    const fleet = await Fleet.serving(2);
    const members = fleet.members();
    fleet.product.child.kill('SIGKILL');
    // The end of the output comes when the last of them has closed it.
    await fleet.product.ended;
    await expect.poll(() => members.map(parentOf), LIMIT).toEqual([undefined, undefined]);
    for (const pid of members) {
      expect(fleet.product.output).toMatch(
        new RegExp(`"pid":${pid},"context":"Process","msg":"the supervising process is gone`),
      );
      expect(fleet.product.output).toMatch(new RegExp(`"pid":${pid},"context":"Process","msg":"stopped"`));
    }
  });
});

describe('a fleet that cannot start', () => {
  it('names the port that is taken, once, and ends', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as { port: number };
    const product = await start({ API_PROCESSES: '3', PORT: String(port) });
    expect((await product.ended).code).toBe(1);
    expect(product.output.match(new RegExp(`port ${port} on 127.0.0.1 is taken`, 'g'))).toHaveLength(1);
    other.close();
  });

  it('names a bad setting, and starts no process', async () => {
    const product = await start({ API_PROCESSES: '65' });
    expect((await product.ended).code).toBe(1);
    expect(product.output).toBe(
      'Bad settings (1):\n  API_PROCESSES must be a whole number of processes, 1 to 64; it is "65"\n',
    );
  });

  it('ends in peace when it is stopped right after the start', async () => {
    const product = await start({ API_PROCESSES: '2' });
    await expect.poll(() => product.output, LIMIT).toContain('LOG_LEVEL');
    product.signal('SIGTERM');
    const end = await product.ended;
    expect(end.code ?? end.signal).toSatisfy((how: unknown) => how === 0 || how === 'SIGTERM');
  });
});
