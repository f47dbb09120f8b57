import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../services/free-port.mjs';
import { endProcess, identify } from '../services/process-identity.mjs';
import { projectRoot } from '../setup/project-root.mjs';

/** The product's order consumer in a process of its own. */
export interface WorkerProcess {
  readonly pid: number;
  /** Stops it where it stands (SIGSTOP): orders queue up. */
  freeze(): void;
  thaw(): void;
  stop(): Promise<void>;
}

const READY_WITHIN_MS = 60_000;

/** Starts dist/apps/worker; resolves when it is ready. */
export async function startWorker(env: Readonly<Record<string, string>>, logFile: string): Promise<WorkerProcess> {
  const port = await freePort();
  const log = openSync(logFile, 'a');
  const child = spawn(process.execPath, ['--enable-source-maps', join(projectRoot, 'dist/apps/worker/src/main.js')], {
    cwd: projectRoot,
    env: { PATH: process.env['PATH'], NODE_ENV: 'development', HOST: '127.0.0.1', PORT: String(port), ...env },
    detached: true,
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  const pid = child.pid as number;
  const stop = async (): Promise<void> => {
    const identity = identify(pid);
    if (identity === undefined) return;
    process.kill(pid, 'SIGCONT');
    await endProcess(identity, [{ signal: 'SIGTERM', limitMs: 10_000 }]);
  };
  const deadlineMs = performance.now() + READY_WITHIN_MS;
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${port}/health/ready`).catch(() => undefined);
    if (answer?.status === 200) break;
    if (performance.now() < deadlineMs && child.exitCode === null) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      continue;
    }
    await stop();
    throw new Error(`the worker was not ready in time; it wrote ${logFile}`);
  }
  return { pid, freeze: () => process.kill(pid, 'SIGSTOP'), thaw: () => process.kill(pid, 'SIGCONT'), stop };
}
