import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { RedisConnection } from './redis-connections.js';
import { asRedisError, classifyRedisError } from './redis-errors.js';

/** A script as it stands in its file, with the digest under which the server caches it. */
export interface LuaScript {
  readonly name: string;
  readonly source: string;
  readonly sha1: string;
}

const INCLUDE = /^--@include ([a-z-]+\.lua)$/gm;

/**
 * Reads a script that lies beside its module: `loadScript(new URL('./scripts/admit.lua', import.meta.url))`. Synchronous, meant for
 * module start. A line `--@include name.lua` stands for that file beside it (one level). Throws where a file is missing or lacks the
 * `#!lua` header, without which a full or read-only server would stop the script half-way instead of refusing it at the start.
 */
export function loadScript(file: URL): LuaScript {
  const source = readFileSync(file, 'utf8').replace(INCLUDE, (_line, included: string) =>
    readFileSync(new URL(included, file), 'utf8').replace(/^#!lua.*\n/, ''),
  );
  const name = file.pathname.slice(file.pathname.lastIndexOf('/') + 1);
  if (!source.startsWith('#!lua')) throw new Error(`${name} must begin with the line "#!lua"`);
  return { name, source, sha1: createHash('sha1').update(source).digest('hex') };
}

/**
 * Runs the script by its digest; where the server does not know it (restart, failover, SCRIPT FLUSH), once more with its text. All keys
 * must share a slot. Resolves to the raw reply. Throws RedisUnavailableError for passing trouble, the driver's error for a defect.
 */
export async function runScript(
  connection: RedisConnection,
  script: LuaScript,
  keys: readonly string[],
  args: readonly (string | number)[],
): Promise<unknown> {
  try {
    return await connection.evalsha(script.sha1, keys.length, ...keys, ...args);
  } catch (error) {
    if (classifyRedisError(error).state !== 'NOSCRIPT') throw asRedisError(error);
  }
  try {
    return await connection.eval(script.source, keys.length, ...keys, ...args);
  } catch (error) {
    throw asRedisError(error);
  }
}
