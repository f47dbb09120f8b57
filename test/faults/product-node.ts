import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, readdirSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../scripts/services/free-port.mjs';
import { endChild, hasEnded } from './store-servers.js';
import { until } from '../support/waiting.js';

const READY_LIMIT_MS = 90_000;

export type NodeKind = 'seckill' | 'worker';

/** One process of the built product: an API or a worker. It keeps its port over restarts. */
export class ProductNode {
  private child: ChildProcess | undefined;
  /** How often it was started. */
  starts = 0;

  private constructor(
    readonly name: string,
    readonly port: number,
    private readonly kind: NodeKind,
    private readonly root: string,
    private readonly env: Readonly<Record<string, string>>,
    private readonly logFile: string,
  ) {}

  /** Spawns it, without waiting until it is ready. `root` is the folder with package.json and dist. */
  static async spawn(options: {
    name: string;
    kind: NodeKind;
    root: string;
    env: Readonly<Record<string, string>>;
    logDir: string;
  }): Promise<ProductNode> {
    const { name, kind, root, env, logDir } = options;
    const node = new ProductNode(name, await freePort(), kind, root, env, join(logDir, `${name}.log`));
    node.up();
    return node;
  }

  get pid(): number {
    return this.child?.pid ?? 0;
  }

  get isRunning(): boolean {
    return !hasEnded(this.child);
  }

  get exitCode(): number | null {
    return this.child?.exitCode ?? null;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  up(): void {
    const entry = join(this.root, `dist/apps/${this.kind}/src/main.js`);
    if (!existsSync(entry)) throw new Error(`${entry} is missing: npm run build`);
    const log = openSync(this.logFile, 'a');
    // The project's condition `source` must not reach it: it runs what was built.
    const { NODE_OPTIONS: _options, ...inherited } = process.env;
    this.child = spawn(process.execPath, ['--max-old-space-size=512', entry], {
      cwd: this.root,
      env: { ...inherited, ...this.env, HOST: '127.0.0.1', PORT: String(this.port) },
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    this.starts += 1;
  }

  /** Resolves when it answers 200 on the path. */
  async ready(path = '/health/ready', limitMs = READY_LIMIT_MS): Promise<void> {
    await until(
      `${this.name} answers 200 on ${path}`,
      async () => {
        const answer = await fetch(this.url + path, { signal: AbortSignal.timeout(5000) });
        const text = await answer.text();
        if (answer.status !== 200) throw new Error(`${answer.status} ${text.slice(0, 300)}`);
        return true;
      },
      limitMs,
      50,
    ).catch((error: Error) => {
      throw new Error(`${error.message}\n${this.lastWords()}`, { cause: error });
    });
  }

  signal(signal: NodeJS.Signals): void {
    this.child?.kill(signal);
  }

  down(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    return endChild(this.child, signal);
  }

  /** Open handles and resident memory, or undefined where the system does not tell. */
  footprint(): { handles: number; residentMb: number } | undefined {
    try {
      const handles = readdirSync(`/proc/${this.pid}/fd`).length;
      const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${this.pid}/status`, 'utf8'))?.[1];
      return { handles, residentMb: Math.round(Number(kilobytes) / 1024) };
    } catch {
      return undefined;
    }
  }

  /** The values of its counters and gauges; a name with labels is spelled as in the text format. */
  async metrics(): Promise<Map<string, number>> {
    const text = await (await fetch(`${this.url}/metrics`, { signal: AbortSignal.timeout(10_000) })).text();
    const found = new Map<string, number>();
    for (const line of text.split('\n')) {
      if (line.startsWith('#')) continue;
      const at = line.lastIndexOf(' ');
      if (at > 0) found.set(line.slice(0, at), Number(line.slice(at + 1)));
    }
    return found;
  }

  lastWords(): string {
    return existsSync(this.logFile) ? readFileSync(this.logFile, 'utf8').slice(-3000) : '';
  }
}
