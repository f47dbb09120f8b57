import { fork } from 'node:child_process';
import { join } from 'node:path';
import { endProcess, identify } from '../services/process-identity.mjs';
import { projectRoot } from '../setup/project-root.mjs';

/** A reference or a peer in a process of its own. */
export interface ChildServer {
  readonly pid: number;
  /** Where it serves HTTP; 0 where it does not. */
  readonly port: number;
  stop(): Promise<void>;
}

const READY_WITHIN_MS = 60_000;

/** Starts dist/scripts/bench/reference/NAME.js with the settings in its environment; resolves when it says (by `tellReady`) that it serves. */
export async function startChildServer(name: string, env: Readonly<Record<string, string>>): Promise<ChildServer> {
  const file = join(projectRoot, `dist/scripts/bench/reference/${name}.js`);
  const child = fork(file, { env: { PATH: process.env['PATH'], NODE_ENV: 'production', ...env }, execArgv: [] });
  const { pid } = child;
  const stop = async (): Promise<void> => {
    const identity = identify(pid);
    if (identity !== undefined) await endProcess(identity, [{ signal: 'SIGTERM', limitMs: 2_000 }]);
  };
  try {
    const port = await new Promise<number>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${name} was not ready in time`)), READY_WITHIN_MS);
      timer.unref();
      child.once('message', (message) => resolve((message as { port: number }).port));
      child.once('error', reject);
      child.once('exit', (code, signal) => reject(new Error(`${name} ended: ${signal ?? code}`)));
    });
    return { pid: pid as number, port, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
