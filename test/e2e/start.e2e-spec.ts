import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

const root = join(import.meta.dirname, '../..');

/** What `npm start -- --json` prints when all is ready. */
interface Report {
  readonly url: string;
  readonly docs: string;
  readonly metrics: string;
  readonly health: string;
  readonly pid: number;
  readonly dataDir: string;
  readonly voucherId: string;
  readonly buyerToken: string;
  readonly adminToken: string;
  readonly curl: string;
}

/** The start command of the built product, on a free port and a data folder of the test. */
class StartCommand {
  private out = '';
  private err = '';
  readonly ended: Promise<number | null>;

  private constructor(private readonly child: ChildProcess) {
    child.stdout?.on('data', (data: Buffer) => (this.out += data.toString()));
    child.stderr?.on('data', (data: Buffer) => (this.err += data.toString()));
    this.ended = new Promise((resolve) => child.once('close', resolve));
  }

  static run(dataDir: string, ...args: string[]): StartCommand {
    const script = join(root, 'scripts/start.mjs');
    const env: NodeJS.ProcessEnv = { ...process.env, PORT: '0' };
    for (const name of ['REDIS_URL', 'DATABASE_URL', 'AUTH_JWT_SECRET', 'NODE_ENV', 'LOG_LEVEL', 'HOST'])
      delete env[name];
    const all = [script, '--as-built', '--data-dir', dataDir, ...args];
    return new StartCommand(spawn(process.execPath, all, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] }));
  }

  get errors(): string {
    return this.err;
  }

  async report(): Promise<Report> {
    await vi.waitFor(() => expect(this.out.includes('\n') || this.child.exitCode !== null).toBe(true), 55_000);
    if (!this.out.includes('\n')) throw new Error(`it ended without a report: ${this.err}`);
    return JSON.parse(this.out) as Report;
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }
}

/** Living processes that name the data folder in their command line (Redis does not, see redisSaidGoodbye). */
async function processesOn(dataDir: string): Promise<string[]> {
  const { stdout } = await promisify(execFile)('ps', ['axo', 'pid=,args=']);
  return stdout.split('\n').filter((line) => line.includes(dataDir));
}

/** Whether Redis, which started last time too, ended in good order. */
function redisSaidGoodbye(dataDir: string): boolean {
  return /bye bye\.*\s*$/.test(readFileSync(join(dataDir, 'logs/redis.log'), 'utf8'));
}

async function orderStatus(report: Report, orderId: string): Promise<string> {
  const response = await fetch(`${report.url}/v1/vouchers/${report.voucherId}/orders/${orderId}`, {
    headers: { authorization: `Bearer ${report.adminToken}` },
  });
  return ((await response.json()) as { status: string }).status;
}

describe('npm start', () => {
  let dataDir: string;
  beforeAll(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'flash-sale-start-'));
  });
  afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

  it('serves, sells by its own curl line, ends everything on SIGTERM, and still has the order at the next start', async () => {
    const first = StartCommand.run(dataDir, '--json');
    const report = await first.report();
    for (const url of [report.docs, report.metrics, report.health]) expect((await fetch(url)).status).toBe(200);

    const { stdout } = await promisify(execFile)('sh', ['-c', report.curl]);
    expect(stdout).toMatch(/^HTTP\/1\.1 202 /);
    const { orderId } = JSON.parse(stdout.slice(stdout.lastIndexOf('{'))) as { orderId: string };
    await vi.waitFor(async () => expect(await orderStatus(report, orderId)).toBe('UNPAID'), 10_000);

    const second = StartCommand.run(dataDir, '--json');
    expect(await second.ended).toBe(1);
    expect(second.errors).toContain(`kill ${report.pid}`);

    first.kill('SIGTERM');
    expect(await first.ended).toBe(0);
    expect(await processesOn(dataDir)).toEqual([]);
    expect(redisSaidGoodbye(dataDir)).toBe(true);
    await expect(fetch(report.health)).rejects.toThrow();

    const third = StartCommand.run(dataDir, '--json');
    const later = await third.report();
    expect(later.voucherId).toBe(report.voucherId);
    expect(later.buyerToken).not.toBe(report.buyerToken);
    expect(await orderStatus(later, orderId)).toBe('UNPAID');
    third.kill('SIGINT');
    third.kill('SIGINT');
    expect(await third.ended).toBe(0);
  }, 120_000);

  it('ends what a killed start left running, and goes on with its data', async () => {
    const killed = StartCommand.run(dataDir, '--json');
    const report = await killed.report();
    killed.kill('SIGKILL');
    await killed.ended;
    expect((await processesOn(dataDir)).length).toBeGreaterThan(0);

    const next = StartCommand.run(dataDir, '--json');
    const later = await next.report();
    expect(later.voucherId).toBe(report.voucherId);
    expect(next.errors).toContain('Ended what an earlier start left running: Redis');
    next.kill('SIGTERM');
    expect(await next.ended).toBe(0);
    expect(await processesOn(dataDir)).toEqual([]);
    expect(redisSaidGoodbye(dataDir)).toBe(true);
  }, 120_000);

  it('stops cleanly while it is still starting', async () => {
    const command = StartCommand.run(dataDir, '--json');
    await vi.waitFor(() => expect(command.errors).toContain('Starting PostgreSQL'), 30_000);
    command.kill('SIGTERM');
    expect(await command.ended).toBe(0);
    expect(await processesOn(dataDir)).toEqual([]);
    expect(redisSaidGoodbye(dataDir)).toBe(true);
  }, 60_000);
});
