import type { ChildProcess } from 'node:child_process';
export function postgresBinaries(): string;
export function startPostgres(options: {
  dir: string;
  port: number;
  settings?: Record<string, string>;
  logFile?: string;
}): Promise<ChildProcess>;
