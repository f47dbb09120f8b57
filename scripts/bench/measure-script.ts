import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { type Sample, sampleOf, startCpu } from './measurement.js';
import type { Stage } from './stage.js';

const run = promisify(execFile);
const PIPELINE = 16;
const CLIENTS = 50;
/** redis-benchmark keeps it in 32 bits. */
const USERS = 2_000_000_000;

/** One purchase: the same reads to decide and the same writes as the product's script, and nothing else. */
const SINGLE_PURCHASE = `
  if tonumber(redis.call('GET', KEYS[1])) <= 0 then return 1 end
  if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1 then return 2 end
  redis.call('XADD', KEYS[3], '*', 'userId', ARGV[1], 'voucherId', ARGV[2], 'id', ARGV[3])
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
  redis.call('DECR', KEYS[1])
  return 0`;
const KEYS = ['bench:stock', 'bench:order', 'bench:stream'] as const;

/** Which program sent the calls. */
export type ScriptClient = 'redis-benchmark' | 'own pipelined client';

export function scriptClient(stage: Stage): ScriptClient {
  return existsSync(benchmarkPath(stage)) ? 'redis-benchmark' : 'own pipelined client';
}

const benchmarkPath = ({ redisBinary }: Stage): string => join(dirname(redisBinary), 'redis-benchmark');

/** Redis's CPU per single-purchase script call, 16 calls in a pipeline, on the same server under the same settings. */
export async function measureScript(stage: Stage, count: number): Promise<Sample> {
  await stage.redis.unlink(...KEYS);
  await stage.redis.set(KEYS[0], count * 2);
  const sha = (await stage.redis.script('LOAD', SINGLE_PURCHASE)) as string;
  const { port } = new URL(stage.redisUrl);
  const cpu = startCpu(stage, { redis: stage.redisPid });
  const startMs = performance.now();
  if (scriptClient(stage) === 'redis-benchmark') {
    const call = ['EVALSHA', sha, '3', ...KEYS, '__rand_int__', '1', '6682013__rand_int__'];
    const settings = [
      '-p',
      port,
      '-n',
      String(count),
      '-c',
      String(CLIENTS),
      '-P',
      String(PIPELINE),
      '-r',
      String(USERS),
      '-q',
    ];
    await run(benchmarkPath(stage), [...settings, ...call]);
  } else {
    await sendPipelines(Number(port), sha, count);
  }
  const wallMs = performance.now() - startMs;
  const used = cpu();
  const bought = await stage.redis.hlen(KEYS[1]);
  await stage.redis.unlink(...KEYS);
  if (bought < count * 0.99) throw new Error(`only ${bought} of ${count} single purchases were made`);
  return sampleOf(bought, wallMs, used);
}

/** Where redis-benchmark is not at hand: the same pipelines over plain sockets. Every reply is `:0\r\n`. */
async function sendPipelines(port: number, sha: string, count: number): Promise<void> {
  const replyBytes = 4;
  let left = count;
  const part = (text: string): string => `$${text.length}\r\n${text}\r\n`;
  const call = (): string => {
    const user = String(Math.floor(Math.random() * USERS)).padStart(12, '0');
    return `*9\r\n${['EVALSHA', sha, '3', ...KEYS, user, '1', `6682013${user}`].map(part).join('')}`;
  };
  const client = (): Promise<void> =>
    new Promise((resolve, reject) => {
      let awaited = 0;
      const send = (): void => {
        const calls = Math.min(PIPELINE, left);
        left -= calls;
        awaited = calls * replyBytes;
        if (calls > 0) return void socket.write(Array.from({ length: calls }, call).join(''));
        socket.destroy();
        resolve();
      };
      const socket = connect(port, '127.0.0.1', send);
      socket.once('error', reject);
      socket.on('data', (chunk) => {
        awaited -= chunk.length;
        if (awaited <= 0) send();
      });
    });
  await Promise.all(Array.from({ length: CLIENTS }, client));
}
