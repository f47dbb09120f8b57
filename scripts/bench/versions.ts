import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../setup/project-root.mjs';
import type { Stage } from './stage.js';

const PACKAGES = ['fastify', '@nestjs/core', 'ioredis', 'pg', 'bullmq'];

/** What the figures were taken with. */
export async function versionsOf(stage: Stage): Promise<Record<string, string>> {
  const { rows } = await stage.sql.query<{ server_version: string }>('SHOW server_version');
  const packages = PACKAGES.map((name): [string, string] => {
    const text = readFileSync(join(projectRoot, 'node_modules', name, 'package.json'), 'utf8');
    return [name, String((JSON.parse(text) as { version: unknown }).version)];
  });
  return {
    Node: process.version,
    Redis: stage.redisVersion,
    PostgreSQL: rows[0]?.server_version ?? 'unknown',
    ...Object.fromEntries(packages),
  };
}
