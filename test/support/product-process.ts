import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../scripts/services/free-port.mjs';
import { TEST_SECRET } from './tokens.js';
import { until } from './waiting.js';

const root = join(import.meta.dirname, '../..');

/** How a process ended. */
export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Milliseconds from the first signal (or from the start) to the end. */
  readonly afterMs: number;
}

/** One process of the built product (dist), as production starts it. `npm run build` must have run. */
export class ProductProcess {
  private sinceMs = performance.now();
  private text = '';
  readonly ended: Promise<ProcessEnd>;

  private constructor(
    readonly child: ChildProcess,
    readonly port: number,
  ) {
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (data: Buffer) => (this.text += data.toString()));
    this.ended = new Promise((resolve) =>
      child.once('close', (code, signal) => resolve({ code, signal, afterMs: performance.now() - this.sinceMs })),
    );
  }

  /** Starts it; settings of `env` win over the defaults (a free port, the tests' secret). Does not wait for anything. */
  static async spawn(name: 'seckill' | 'worker', env: Readonly<Record<string, string>>): Promise<ProductProcess> {
    const entry = join(root, `dist/apps/${name}/src/main.js`);
    if (!existsSync(entry)) throw new Error(`${entry} is missing: npm run build`);
    const port = env['PORT'] === undefined ? await freePort() : Number(env['PORT']);
    const child = spawn(process.execPath, [entry], {
      cwd: root,
      env: { PATH: process.env['PATH'], PORT: String(port), AUTH_JWT_SECRET: TEST_SECRET, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    return new ProductProcess(child, port);
  }

  /** All that it has written so far. */
  get output(): string {
    return this.text;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Resolves when GET on the path answers with the status; fails with the process's own words after `limitMs`, or when it ends before. */
  async until(path: string, status: number, limitMs = 30_000): Promise<Response> {
    let said = 'no answer';
    const look = async (): Promise<Response | 'ENDED' | undefined> => {
      if (this.child.exitCode !== null) return 'ENDED';
      const answer = await fetch(this.url + path);
      if (answer.status === status) return answer;
      said = `${answer.status} ${await answer.text()}`;
      return undefined;
    };
    const seen = await until(path, look, limitMs).catch(() => 'LATE' as const);
    if (typeof seen === 'string') throw new Error(`GET ${path} did not answer ${status}: ${said}\n${this.text}`);
    return seen;
  }

  /** Sends the signal; the time of `ended` counts from the first one. */
  signal(signal: NodeJS.Signals): void {
    this.sinceMs = performance.now();
    this.child.kill(signal);
  }

  /** Ends it for good, whatever state it is in. */
  async destroy(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill('SIGKILL');
    await this.ended;
  }
}
