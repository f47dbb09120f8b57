import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../scripts/services/free-port.mjs';
import { answersPing } from '../../scripts/services/redis-server.mjs';

/** A real sentinel on a free port of 127.0.0.1, with a folder of its own. */
export class TestSentinel {
  private constructor(
    readonly port: number,
    private readonly dir: string,
    private readonly child: ChildProcess,
  ) {}

  /** Starts it with these lines of configuration; it listens on `port` and answers PING before this resolves. */
  static async start(lines: readonly string[]): Promise<TestSentinel> {
    const port = await freePort();
    const dir = mkdtempSync(join(tmpdir(), 'flash-sale-sentinel-'));
    const file = join(dir, 'sentinel.conf');
    writeFileSync(file, [`port ${port}`, 'bind 127.0.0.1', `dir ${dir}`, ...lines, ''].join('\n'));
    const server = process.env['REDIS_SERVER'] || 'redis-server';
    const child = spawn(server, [file, '--sentinel'], { detached: true, stdio: 'ignore' });
    const failed = new Promise<never>((_, reject) => {
      child.once('error', reject);
      child.once('exit', (code) => reject(new Error(`the sentinel ended with code ${code}`)));
    });
    failed.catch(() => undefined);
    await Promise.race([failed, answersPing(port, 30_000)]);
    return new TestSentinel(port, dir, child);
  }

  async destroy(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      const ended = new Promise((resolve) => this.child.once('exit', resolve));
      this.child.kill('SIGKILL');
      await ended;
    }
    rmSync(this.dir, { recursive: true, force: true });
  }
}
