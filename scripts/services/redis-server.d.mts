import type { ChildProcess } from 'node:child_process';
export function startRedis(options: {
  binary?: string;
  dir: string;
  port: number;
  args?: string[];
  logFile?: string;
}): Promise<ChildProcess>;
export function answersPing(port: number, limitMs: number): Promise<void>;
