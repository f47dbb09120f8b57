import { type ChildProcess, fork } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort } from './services/free-port.mjs';
import { startRedis } from './services/redis-server.mjs';
import type { LabMessage, LabTask, Means } from './lab-process.js';

/** What happens to the queue in hand. */
export type Scenario = 'steady' | 'consumer killed' | 'consumer away' | 'Redis killed' | 'producer killed';
export const MEANS: readonly Means[] = ['memory', 'list', 'reliable list', 'pub/sub', 'stream'];
export const SCENARIOS: readonly Scenario[] = [
  'steady',
  'consumer killed',
  'consumer away',
  'Redis killed',
  'producer killed',
];

/** What came of one run. Counts are orders; `ordersPerSecond` from the first offer to the last handling. */
export interface LabResult {
  readonly means: Means;
  readonly scenario: Scenario;
  readonly accepted: number;
  readonly delivered: number;
  readonly lost: number;
  readonly twice: number;
  /** True where first deliveries came in the order of acceptance within the window of offers under way. */
  readonly orderKept: boolean;
  readonly ordersPerSecond: number;
  /** Peak of Redis' memory above its start, or of the process' heap for the in-process queue. */
  readonly memoryBytes: number;
}

export interface LabOptions {
  readonly orders: number;
  readonly awayMs: number;
  readonly dir: string;
}

/** Deliveries may overtake one another by as many orders as are offered at once. */
const WINDOW = 256;
const QUIET_MS = 1500;
const RUN_LIMIT_MS = 60_000;

/** Runs one scenario with real processes: each child may be killed, the records are files that survive it. */
export async function runScenario(means: Means, scenario: Scenario, options: LabOptions): Promise<LabResult> {
  const dir = join(options.dir, `${means}-${scenario}`.replaceAll(/\W/g, '-'));
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  const bench = new LabBench(means, dir, options);
  await bench.open();
  try {
    return await bench.run(scenario);
  } finally {
    await bench.close();
  }
}

class LabBench {
  private readonly acceptedFile: string;
  private readonly handledFile: string;
  private readonly children = new Set<ChildProcess>();
  private redis: ChildProcess | undefined;
  private port = 0;
  private heapBytes = 0;

  constructor(
    private readonly means: Means,
    private readonly dir: string,
    private readonly options: LabOptions,
  ) {
    this.acceptedFile = join(dir, 'accepted');
    this.handledFile = join(dir, 'handled');
    for (const file of [this.acceptedFile, this.handledFile]) writeFileSync(file, '');
  }

  async open(): Promise<void> {
    this.port = await freePort();
    await this.startServer();
  }

  async close(): Promise<void> {
    for (const child of this.children) await end(child, 'SIGKILL');
    if (this.redis !== undefined) await end(this.redis, 'SIGKILL');
  }

  async run(scenario: Scenario): Promise<LabResult> {
    const memoryBefore = await this.redisMemoryBytes();
    const startedMs = Date.now();
    if (this.means === 'memory') await this.playInOneProcess(scenario);
    else await this.playInTwoProcesses(scenario);
    await this.quiet();
    const memoryBytes = this.means === 'memory' ? this.heapBytes : (await this.redisMemoryBytes()) - memoryBefore;
    return this.judge(scenario, startedMs, memoryBytes);
  }

  private async playInTwoProcesses(scenario: Scenario): Promise<void> {
    const { orders, awayMs } = this.options;
    const middle = Math.floor(orders / 2);
    const consumerDies = scenario === 'consumer killed';
    const producerDies = scenario === 'producer killed';
    const consumer = this.spawn({ role: 'consumer', dieAt: consumerDies ? middle : undefined });
    await said(consumer, 'consuming');
    if (scenario === 'consumer away') await end(consumer, 'SIGTERM');
    const producer = this.spawn({ role: 'producer', dieAt: producerDies ? middle : undefined });
    const offered = producerDies ? gone(producer) : said(producer, 'offered');
    if (consumerDies) await gone(consumer).then(() => this.consumeAgain());
    if (scenario === 'consumer away') {
      await pause(awayMs);
      await this.consumeAgain();
    }
    if (scenario === 'Redis killed') await this.restartServerInTheMiddle();
    await offered;
    if (producerDies) await said(this.spawn({ role: 'producer', first: this.lastAccepted() + 1 }), 'offered');
  }

  /** In one process a kill of either part is a kill of both. */
  private async playInOneProcess(scenario: Scenario): Promise<void> {
    const middle = Math.floor(this.options.orders / 2);
    const dies = scenario === 'consumer killed' || scenario === 'producer killed';
    const both = this.spawn({ role: 'both', dieAt: dies ? middle : undefined });
    const offered = said(both, 'offered');
    if (scenario === 'Redis killed') await this.restartServerInTheMiddle();
    if (!dies) return void (await offered);
    await gone(both);
    await said(this.spawn({ role: 'both', first: this.lastAccepted() + 1 }), 'offered');
  }

  private consumeAgain(): Promise<void> {
    return said(this.spawn({ role: 'consumer' }), 'consuming');
  }

  private spawn(part: Partial<LabTask> & { role: LabTask['role'] }): ChildProcess {
    const child = fork(new URL('./lab-process.js', import.meta.url), {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.children.add(child);
    child.on('message', (message: LabMessage) => {
      if (message.kind === 'memory') this.heapBytes = Math.max(this.heapBytes, message.bytes);
    });
    child.send({
      means: this.means,
      url: `redis://127.0.0.1:${this.port}`,
      first: 1,
      last: this.options.orders,
      acceptedFile: this.acceptedFile,
      handledFile: this.handledFile,
      dieAt: undefined,
      ...part,
    } satisfies LabTask);
    return child;
  }

  private async startServer(): Promise<void> {
    this.redis = await startRedis({
      dir: join(this.dir, 'redis'),
      port: this.port,
      args: ['--appendfsync', 'everysec'],
    });
  }

  private async restartServerInTheMiddle(): Promise<void> {
    const half = this.options.orders / 4;
    await until(() => idsIn(this.acceptedFile).length >= half, RUN_LIMIT_MS);
    if (this.redis !== undefined) await end(this.redis, 'SIGKILL');
    await this.startServer();
  }

  private lastAccepted(): number {
    return Math.max(0, ...idsIn(this.acceptedFile));
  }

  private async redisMemoryBytes(): Promise<number> {
    const client = new Redis(this.port, '127.0.0.1');
    const info = await client.info('memory');
    client.disconnect();
    return Number(/used_memory_peak:(\d+)/.exec(info)?.[1] ?? 0);
  }

  /** Waits until all is handled, or nothing more has been handled for a while: then the rest is lost. */
  private async quiet(): Promise<void> {
    const accepted = new Set(idsIn(this.acceptedFile));
    let seen = -1;
    let sinceMs = Date.now();
    await until(() => {
      const handled = idsIn(this.handledFile);
      if (handled.length !== seen) {
        seen = handled.length;
        sinceMs = Date.now();
      }
      return new Set(handled).size >= accepted.size || Date.now() - sinceMs > QUIET_MS;
    }, RUN_LIMIT_MS);
  }

  private judge(scenario: Scenario, startedMs: number, memoryBytes: number): LabResult {
    const accepted = new Set(idsIn(this.acceptedFile));
    const handled = idsIn(this.handledFile);
    const delivered = new Set(handled);
    return {
      means: this.means,
      scenario,
      accepted: accepted.size,
      delivered: delivered.size,
      lost: [...accepted].filter((id) => !delivered.has(id)).length,
      twice: handled.length - delivered.size,
      orderKept: inOrder(delivered),
      ordersPerSecond: Math.round(delivered.size / ((Date.now() - startedMs) / 1000)),
      memoryBytes,
    };
  }
}

/** A set keeps the order of first insertion: each id may stand at most a window behind the highest seen. */
function inOrder(firstDeliveries: ReadonlySet<number>): boolean {
  let highest = 0;
  for (const id of firstDeliveries) {
    if (id < highest - WINDOW) return false;
    highest = Math.max(highest, id);
  }
  return true;
}

function idsIn(file: string): number[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map(Number);
}

function said(child: ChildProcess, kind: LabMessage['kind']): Promise<void> {
  return new Promise((resolve) => {
    child.on('message', (message: LabMessage) => {
      if (message.kind === kind) resolve();
    });
    child.once('exit', () => resolve());
  });
}

function gone(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => child.once('exit', () => resolve()));
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  const ended = gone(child);
  child.kill(signal);
  await ended;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function until(done: () => boolean, limitMs: number): Promise<void> {
  const deadline = Date.now() + limitMs;
  while (!done()) {
    if (Date.now() > deadline) throw new Error(`the laboratory waited ${limitMs} ms in vain`);
    await pause(100);
  }
}
