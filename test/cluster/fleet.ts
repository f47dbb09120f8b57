import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Cluster, Redis } from 'ioredis';
import { signToken } from '../../scripts/services/signed-token.mjs';
import { checkSale } from '../faults/checker.js';
import { isOpen, purchase } from '../faults/crowd.js';
import { type Call, History } from '../faults/history.js';
import { HttpConnection } from '../faults/http-client.js';
import { ProductNode } from '../faults/product-node.js';
import { StoreReader } from '../faults/store-reader.js';
import { PostgresServer, type RedisServer } from '../faults/store-servers.js';
import { pause, until } from '../support/waiting.js';
import { FAULT_SECRET } from '../faults/world.js';

const root = join(import.meta.dirname, '../..');
const CALL_LIMIT_MS = 15_000;
const SETTLE_LIMIT_MS = 120_000;
const HOUR_MS = 3_600_000;

const SETTINGS = {
  NODE_ENV: 'production',
  AUTH_JWT_SECRET: FAULT_SECRET,
  ADMISSION_DURABILITY: 'replica',
  CONSUMER_BLOCK_MS: '500',
  CONSUMER_BATCH_SIZE: '200',
  CLAIM_MIN_IDLE_MS: '3000',
  SHUTDOWN_TIMEOUT_MS: '5000',
  DB_POOL_SIZE: '5',
  LOG_LEVEL: 'warn',
};

export interface FleetVoucher {
  readonly voucherId: string;
  readonly partition: number;
}

let nextUser = 5_000_000;

/** Two API and two worker processes of the built product on a Redis of several nodes, with buyers who remember every answer. */
export class Fleet {
  readonly history = new History();
  readonly vouchers: FleetVoucher[] = [];
  private load: { stopped: boolean; done: Promise<unknown> } | undefined;

  private constructor(
    readonly dir: string,
    readonly postgres: PostgresServer,
    readonly apis: readonly ProductNode[],
    readonly workers: readonly ProductNode[],
    private readonly env: Readonly<Record<string, string>>,
    private readonly reader: StoreReader,
  ) {}

  /** `env` names the Redis; `client` is the harness's own connection to it. */
  static async start(dir: string, env: Readonly<Record<string, string>>, client: Redis | Cluster): Promise<Fleet> {
    const postgres = await PostgresServer.start(join(dir, 'postgres', 'data'));
    const whole = { ...SETTINGS, DATABASE_URL: postgres.url(), ...env };
    const spawnNode = (kind: 'seckill' | 'worker', name: string, further = {}) =>
      ProductNode.spawn({ name, kind, root, env: { ...whole, ...further }, logDir: dir });
    const apis = [
      await spawnNode('seckill', 'api-1', { CONSUMER_ENABLED: 'false' }),
      await spawnNode('seckill', 'api-2', { CONSUMER_ENABLED: 'false' }),
    ];
    const workers = [await spawnNode('worker', 'worker-1'), await spawnNode('worker', 'worker-2')];
    // The reader gives each command one key: a cluster's client serves it as a single server's would.
    const store = { with: (use: (redis: Redis) => Promise<unknown>) => use(client as Redis) } as unknown as RedisServer;
    const fleet = new Fleet(dir, postgres, apis, workers, whole, new StoreReader(() => store, postgres));
    try {
      await fleet.ready();
    } catch (error) {
      await fleet.stop();
      throw error;
    }
    return fleet;
  }

  /** Resolves when purchases are answered, and orders move, on every process. */
  async ready(): Promise<void> {
    await Promise.all([
      ...this.apis.map((node) => node.ready('/health/ready')),
      ...this.workers.map((node) => node.ready('/health/orders')),
    ]);
  }

  async openSales(count: number, units: number): Promise<void> {
    const token = signToken({ secret: FAULT_SECRET, user: '1', role: 'admin' });
    for (let nth = 0; nth < count; nth += 1) {
      const api = this.apis[nth % this.apis.length] as ProductNode;
      const answer = await fetch(`${api.url}/v1/vouchers`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          ...{ shopId: '1', title: 'Cluster sale', payValue: 100, actualValue: 200, stock: units },
          beginTime: new Date(Date.now() - HOUR_MS).toISOString(),
          endTime: new Date(Date.now() + 24 * HOUR_MS).toISOString(),
        }),
      });
      if (answer.status !== 201) throw new Error(`${answer.status} ${await answer.text()}`);
      const { voucherId } = (await answer.json()) as { voucherId: string };
      const { partition } = await this.reader.sale(voucherId);
      this.vouchers.push({ voucherId, partition });
    }
  }

  /** Buyers come without end, each for one voucher after the other in turn, until `calm`. */
  startLoad(buyers: number): void {
    const load = { stopped: false, done: Promise.resolve() as Promise<unknown> };
    let turn = 0;
    const buy = async (nth: number) => {
      const api = this.apis[nth % this.apis.length] as ProductNode;
      const connection = new HttpConnection(api.port, CALL_LIMIT_MS);
      while (!load.stopped) {
        const { voucherId } = this.vouchers[turn++ % this.vouchers.length] as FleetVoucher;
        const userId = String(nextUser++);
        let call = await purchase(connection, this.history, voucherId, userId);
        // Whoever was refused for now, or is in doubt, asks once more, and at the end (settle).
        if (isOpen(call)) {
          await pause(100);
          call = await purchase(connection, this.history, voucherId, userId);
        }
        await pause(20);
      }
      connection.close();
    };
    load.done = Promise.all(Array.from({ length: buyers }, (_, nth) => buy(nth)));
    this.load = load;
  }

  async calm(): Promise<void> {
    const { load } = this;
    this.load = undefined;
    if (load === undefined) return;
    load.stopped = true;
    await load.done;
  }

  /** Resolves when so many further purchases were accepted, of the partitions where given. */
  accepted(count: number, partitions?: readonly number[]): Promise<void> {
    const ids = this.idsOf(partitions);
    const fits = (call: Call) => call.knowledge === 'ACCEPTED' && ids.has(call.voucherId);
    return this.history.when(count, fits, 60_000, 'accepted purchases');
  }

  /** Resolves, on every partition named, at its first purchase accepted from `sinceMs` on; answers how long the slowest took. */
  async resumed(partitions: readonly number[], sinceMs: number, limitMs: number): Promise<number> {
    const firstOf = (partition: number) => {
      const ids = this.idsOf([partition]);
      return this.history.calls.find(
        (call) => call.sentAtMs >= sinceMs && call.knowledge === 'ACCEPTED' && ids.has(call.voucherId),
      );
    };
    const firsts = await until(
      `purchases on partitions ${partitions.join(', ')} are accepted again`,
      () => {
        const found = partitions.map(firstOf);
        return found.every((call) => call !== undefined) ? found : undefined;
      },
      limitMs,
    );
    return Math.round(Math.max(...firsts.map((call) => call.sentAtMs + call.tookMs)) - sinceMs);
  }

  /** Calls on these partitions since then that got neither an order nor a refusal by the rules. */
  troubled(partitions: readonly number[], sinceMs: number, untilMs = performance.now()): Call[] {
    const ids = this.idsOf(partitions);
    return this.history.calls.filter(
      (call) => call.sentAtMs >= sinceMs && call.sentAtMs <= untilMs && ids.has(call.voucherId) && isOpen(call),
    );
  }

  partitionsBeside(partitions: readonly number[]): number[] {
    return [...new Set(this.vouchers.map(({ partition }) => partition))].filter((each) => !partitions.includes(each));
  }

  /** Asks for everybody in doubt until he knows, waits until all orders are stored, then names every broken promise. */
  async verdict(): Promise<string[]> {
    await this.calm();
    await this.settle();
    const broken: string[] = [];
    for (const { voucherId } of this.vouchers) {
      await until(
        `all orders of voucher ${voucherId} are stored`,
        async () => {
          const sale = await this.reader.sale(voucherId);
          if (sale.marks.size === sale.active.length + sale.deadLetters.length) return true;
          throw new Error(`${sale.marks.size} marks, ${sale.active.length} rows`);
        },
        SETTLE_LIMIT_MS,
        50,
      );
      // Read again: a look takes several queries, and the last order was being stored meanwhile.
      const state = await this.reader.sale(voucherId);
      broken.push(
        ...checkSale(state, this.history.of(voucherId), { soldOut: false }).map((each) => `${voucherId}: ${each}`),
      );
    }
    for (const node of [...this.apis, ...this.workers])
      if (!node.isRunning || node.starts !== 1) broken.push(`${node.name} was restarted or ended: ${node.lastWords()}`);
    return broken;
  }

  /** `npm run audit` on these stores: its exit code and words. */
  audit(): Promise<{ code: number | null; words: string }> {
    const { CONSUMER_ENABLED: _consumer, ...env } = this.env as Record<string, string>;
    return new Promise((resolve, reject) => {
      let words = '';
      const child = spawn(process.execPath, [join(root, 'dist/scripts/audit.js')], {
        cwd: root,
        env: { PATH: process.env['PATH'], ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (data: Buffer) => (words += data.toString()));
      child.once('error', reject);
      child.once('close', (code) => resolve({ code, words }));
    });
  }

  lastWords(): string {
    return [...this.apis, ...this.workers].map((node) => `--- ${node.name}\n${node.lastWords()}`).join('\n');
  }

  async stop(): Promise<void> {
    if (this.load !== undefined) this.load.stopped = true;
    await Promise.all([...this.apis, ...this.workers].map((node) => node.down('SIGKILL')));
    await this.postgres.down('SIGQUIT');
  }

  private async settle(): Promise<void> {
    const last = new Map(this.history.calls.map((call) => [`${call.voucherId}:${call.userId}`, call]));
    const open = [...last.values()].filter(isOpen);
    let at = 0;
    const ask = async (nth: number) => {
      const connection = new HttpConnection((this.apis[nth % this.apis.length] as ProductNode).port, CALL_LIMIT_MS);
      for (let call = open[at++]; call !== undefined; call = open[at++]) {
        const { voucherId, userId } = call;
        await until(
          `user ${userId} hears a final answer`,
          async () => !isOpen(await purchase(connection, this.history, voucherId, userId)),
          SETTLE_LIMIT_MS,
          100,
        );
      }
      connection.close();
    };
    await Promise.all(Array.from({ length: 16 }, (_, nth) => ask(nth)));
  }

  private idsOf(partitions?: readonly number[]): Set<string> {
    const chosen = this.vouchers.filter(({ partition }) => partitions?.includes(partition) ?? true);
    return new Set(chosen.map(({ voucherId }) => voucherId));
  }
}

/** A folder of one run, which PostgreSQL's own user may enter. */
export function runFolder(): { readonly dir: string; readonly remove: () => void } {
  const dir = mkdtempSync(join(tmpdir(), 'flash-sale-cluster-'));
  chmodSync(dir, 0o755);
  mkdirSync(join(dir, 'postgres'));
  return { dir, remove: () => rmSync(dir, { recursive: true, force: true }) };
}
