import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Logger } from '@nestjs/common';
import { register } from 'prom-client';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Settings } from '#config';
import { TestRedis } from '../../../test/support/services.js';
import { blockingTimeouts, commandTimeouts, reconnectDelayMs } from './connection-options.js';
import { DurabilityProbe } from './durability-probe.js';
import { LockService } from './lock.js';
import { loadScript, runScript } from './lua-script.js';
import { RedisConnections } from './redis-connections.js';
import { classifyRedisError, guardRedis, RedisUnavailableError } from './redis-errors.js';

const settings = (url: string, over: { requestTimeoutMs?: number; blockMs?: number; keyPrefix?: string } = {}) =>
  ({
    http: { requestTimeoutMs: over.requestTimeoutMs ?? 600 },
    redis: { url, clusterNodes: undefined, keyPrefix: over.keyPrefix ?? '' },
    consumer: { blockMs: over.blockMs ?? 500 },
  }) as Settings;
const connect = async (url: string, over?: Parameters<typeof settings>[1]) => {
  const connections = new RedisConnections(settings(url, over));
  expect(await connections.whenReady(10_000)).toBe(true);
  return connections;
};

let server: TestRedis;
let connections: RedisConnections;
beforeAll(async () => {
  server = await TestRedis.start();
  connections = await connect(server.url);
});
afterAll(async () => {
  connections.onApplicationShutdown();
  await server.destroy();
});
afterEach(() => vi.restoreAllMocks());

describe('errors', () => {
  it.each([
    ["Stream isn't writeable and enableOfflineQueue options is false", { sent: false, refused: true, passing: true }],
    ["Cluster isn't ready and enableOfflineQueue options is false", { sent: false, refused: true, passing: true }],
    ['connect ECONNREFUSED 127.0.0.1:1', { sent: false, refused: true, passing: true }],
    ['Connection is closed.', { sent: true, refused: false, passing: true }],
    ['Command timed out', { sent: true, refused: false, passing: true }],
    ['Command aborted due to connection close', { sent: true, refused: false, passing: true }],
    ['Reached the max retries per request limit (which is 0).', { sent: true, refused: false, passing: true }],
    [
      "OOM command not allowed when used memory > 'maxmemory'.",
      { sent: true, refused: true, passing: true, state: 'OOM' },
    ],
    ['LOADING Redis is loading the dataset in memory', { sent: true, refused: true, passing: true, state: 'LOADING' }],
    [
      "READONLY You can't write against a read only replica.",
      { sent: true, refused: true, passing: true, state: 'READONLY' },
    ],
    ['MASTERDOWN Link with MASTER is down', { sent: true, refused: true, passing: true, state: 'MASTERDOWN' }],
    ['NOAUTH Authentication required.', { sent: true, refused: true, passing: true, state: 'NOAUTH' }],
    [
      'Too many Cluster redirections. Last error: ReplyError: TRYAGAIN Multiple keys request',
      { sent: true, refused: true, passing: true, state: 'TRYAGAIN' },
    ],
    [
      'OOM command not allowed script: f00, on @user_script:3.',
      { sent: true, refused: false, passing: true, state: 'OOM' },
    ],
    [
      'ERR Error running script (call to f_00): @user_script:3: -OOM command not allowed',
      { sent: true, refused: false, passing: true, state: 'OOM' },
    ],
    [
      "ERR The user executing the script can't run this command or subcommand",
      { sent: true, refused: false, passing: true, state: 'NOPERM' },
    ],
    ['WRONGTYPE Operation against a key', { sent: true, refused: true, passing: false, state: 'WRONGTYPE' }],
    ['ERR wrong number of arguments', { sent: true, refused: false, passing: false, state: 'ERR' }],
    ['something else', { sent: true, refused: false, passing: false }],
  ])('sorts "%s"', (message, expected) => expect(classifyRedisError(new Error(message))).toEqual(expected));

  it('turns passing trouble into one class with a code and leaves defects as they are', async () => {
    const passing = await guardRedis(Promise.reject(new Error('Command timed out'))).catch((error: unknown) => error);
    expect(passing).toBeInstanceOf(RedisUnavailableError);
    expect(passing).toMatchObject({ code: 'REDIS_UNAVAILABLE', kind: { sent: true, passing: true } });
    const defect = new Error('WRONGTYPE x');
    await expect(guardRedis(Promise.reject(defect))).rejects.toBe(defect);
    expect(await guardRedis(Promise.resolve(7))).toBe(7);
  });
});

describe('scripts', () => {
  const dir = mkdtempSync(join(tmpdir(), 'flash-sale-scripts-'));
  afterAll(() => rmSync(dir, { recursive: true }));
  const file = (name: string, text: string) => {
    writeFileSync(join(dir, name), text);
    return pathToFileURL(join(dir, name));
  };
  file('included.lua', "#!lua\n-- Purpose: included\nlocal word = 'included'\n");
  const body = '#!lua flags=no-writes\n--@include included.lua\nreturn { KEYS[1], ARGV[1], word }\n';
  const NUMBER = loadScript(file('number.lua', body));

  it('run by their digest, and by their text where the server does not know them', async () => {
    await connections.command.script('FLUSH');
    expect(await runScript(connections.command, NUMBER, ['k'], ['7'])).toEqual(['k', '7', 'included']);
    await connections.command.config('RESETSTAT');
    expect(await runScript(connections.command, NUMBER, ['k'], ['8'])).toEqual(['k', '8', 'included']);
    expect(await connections.command.info('commandstats')).not.toContain('cmdstat_eval:');
  });

  it('need the header that makes the server refuse them at the start', () => {
    expect(() => loadScript(file('bare.lua', 'return 1'))).toThrow('must begin');
  });
});

describe('connections', () => {
  it('wait in growing, bounded, jittered steps, and outlast what they must outlast', () => {
    const delays = [1, 2, 5, 10, 1000].map((attempt) => reconnectDelayMs(attempt, () => 1));
    expect(delays).toEqual([100, 200, 1000, 1000, 1000]);
    expect(reconnectDelayMs(5, () => 0)).toBe(500);
    const { commandTimeoutMs, socketTimeoutMs } = commandTimeouts(1500);
    expect(commandTimeoutMs).toBeLessThan(1500);
    expect(socketTimeoutMs).toBeGreaterThan(1500);
    expect(blockingTimeouts(10_000, 1500)).toEqual({ commandTimeoutMs: undefined, socketTimeoutMs: 11_650 });
  });

  it('fail at once while the server is away, keep nothing for later, and return by themselves', async () => {
    const away = await TestRedis.start();
    const lost = await connect(away.url);
    await away.down();
    await expect.poll(() => lost.isReady()).toBe(false);
    const rejections = await Promise.allSettled(Array.from({ length: 100 }, () => lost.command.incr('n')));
    expect(rejections.every(({ status }) => status === 'rejected')).toBe(true);
    await away.up();
    expect(await lost.whenReady(10_000)).toBe(true);
    expect(await lost.command.get('n')).toBeNull();
    lost.onApplicationShutdown();
    await away.destroy();
  });

  it('notice a frozen server by their timeouts, on the command and on the blocking connection, and resume', async () => {
    const frozen = await TestRedis.start();
    const lost = await connect(frozen.url, { requestTimeoutMs: 300, blockMs: 200 });
    const blocking = lost.openBlocking('reader', 's');
    await expect.poll(() => lost.isReady(blocking)).toBe(true);
    frozen.signal('SIGSTOP');
    const command = lost.command.ping();
    const read = blocking.xread('BLOCK', 200, 'STREAMS', 's', '$');
    await expect(command).rejects.toThrow('timed out');
    await expect(read).rejects.toThrow();
    await expect.poll(() => lost.isReady(), { timeout: 10_000 }).toBe(false);
    frozen.signal('SIGCONT');
    await expect.poll(() => lost.isReady() && lost.isReady(blocking), { timeout: 10_000 }).toBe(true);
    expect(await lost.command.ping()).toBe('PONG');
    expect(await blocking.xread('BLOCK', 50, 'STREAMS', 's', '$')).toBeNull();
    lost.onApplicationShutdown();
    await frozen.destroy();
  });

  it('block for the whole block time without a command timeout, and disconnect ends the read at once', async () => {
    const own = await connect(server.url, { requestTimeoutMs: 100, blockMs: 60_000 });
    const blocking = own.openBlocking('reader', 's');
    await expect.poll(() => own.isReady(blocking)).toBe(true);
    // Longer than the command connection's timeout: the read comes back empty, not as an error.
    expect(await blocking.xread('BLOCK', 250, 'STREAMS', 's', '$')).toBeNull();
    const read = blocking.xread('BLOCK', 60_000, 'STREAMS', 's', '$');
    own.close(blocking);
    await expect(read).rejects.toThrow();
    own.close(blocking);
    own.onApplicationShutdown();
  });

  it('survive being killed by the server, again and again', async () => {
    for (let round = 0; round < 5; round++) {
      await connections.command.client('KILL', 'TYPE', 'normal', 'SKIPME', 'no').catch(() => undefined);
      expect(await connections.whenReady(10_000)).toBe(true);
      await expect.poll(() => connections.command.ping().catch(() => 'away')).toBe('PONG');
    }
  });

  it('log errors at a bounded rate and never a secret; a wrong password is healed by a right one', async () => {
    const warn = vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const log = vi.spyOn(Logger.prototype, 'log').mockImplementation(() => undefined);
    await connections.command.acl('SETUSER', 'late', 'reset', 'on', '>other', '~*', '+@all');
    const own = new RedisConnections(settings(server.url.replace('redis://', 'redis://late:topsecret@')));
    expect(await own.whenReady(1200)).toBe(false);
    await connections.command.acl('SETUSER', 'late', '>topsecret');
    expect(await own.whenReady(10_000)).toBe(true);
    const lines = [...warn.mock.calls, ...log.mock.calls].map((call) => String(call[0]));
    expect(lines.some((line) => line.includes('WRONGPASS'))).toBe(true);
    expect(lines.length).toBeLessThan(10);
    expect(lines.join('\n')).not.toContain('topsecret');
    own.onApplicationShutdown();
  });

  it('show in a metric whether they are up', async () => {
    const shown = () => register.getSingleMetricAsString('seckill_redis_connection_up');
    const metered = connections.openBlocking('metered', 's');
    await expect.poll(shown).toContain('{connection="metered"} 1');
    connections.close(metered);
    expect(await shown()).not.toContain('metered');
  });
});

describe('locks', () => {
  it('are held by one at a time, in their own name space, and are free after release or expiry', async () => {
    const locks = new LockService(connections, settings(server.url, { keyPrefix: 'p:' }));
    const lock = await locks.tryAcquire('order:42', 5000);
    expect(lock?.expiresAtMs).toBeGreaterThan(Date.now());
    expect(await connections.command.type('p:lock:order:42')).toBe('string');
    expect(await locks.tryAcquire('order:42', 5000)).toBeUndefined();
    await lock?.release();
    const kept = await locks.tryAcquire('order:44', 5000);
    expect(await kept?.extend(60_000)).toBe(true);
    expect(await connections.command.pttl('p:lock:order:44')).toBeGreaterThan(30_000);
    await kept?.release();
    expect(await kept?.extend(5000)).toBe(false);
    const short = await locks.tryAcquire('order:42', 30);
    expect(short).toBeDefined();
    await expect.poll(async () => (await locks.tryAcquire('order:42', 5000)) !== undefined).toBe(true);
  });

  it('never throw when released late, twice, or after another took them, and leave the other one alone', async () => {
    const locks = new LockService(connections, settings(server.url));
    const lock = await locks.tryAcquire('order:43', 5000);
    await connections.command.set('lock:order:43', 'someone else');
    await lock?.release();
    await lock?.release();
    expect(await connections.command.get('lock:order:43')).toBe('someone else');
  });

  it('are "not now" while held by hand, and while Redis is away', async () => {
    const away = await TestRedis.start();
    const lost = await connect(away.url);
    const locks = new LockService(lost, settings(away.url));
    await lost.command.set('lock:order:1', 'x', 'PX', 30_000);
    expect(await locks.tryAcquire('order:1', 1000)).toBeUndefined();
    const held = await locks.tryAcquire('order:2', 1000);
    await away.down();
    expect(await locks.tryAcquire('order:3', 1000)).toBeUndefined();
    await held?.release();
    lost.onApplicationShutdown();
    await away.destroy();
  });

  it('refuse names outside their form', async () => {
    const locks = new LockService(connections, settings(server.url));
    for (const name of ['order', 'order: 1', ':1', 'Order:1'])
      await expect(locks.tryAcquire(name, 1000)).rejects.toThrow(TypeError);
    await expect(locks.tryAcquire('order:1', 0)).rejects.toThrow(TypeError);
  });
});

describe('durability', () => {
  it.each([
    [['--appendfsync', 'always'], { level: 'always', mayEvict: false }],
    [['--appendfsync', 'everysec'], { level: 'everysec', mayEvict: false }],
    [['--appendfsync', 'no'], { level: 'none', mayEvict: false }],
    [
      ['--appendonly', 'no', '--maxmemory-policy', 'allkeys-lru'],
      { level: 'none', mayEvict: true, maxmemoryPolicy: 'allkeys-lru' },
    ],
  ])('is read from the server: %s', async (args, expected) => {
    const other = await TestRedis.start(args);
    const own = await connect(other.url);
    const probe = new DurabilityProbe(own);
    expect(probe.last).toBeUndefined();
    expect(await probe.read()).toMatchObject({ ...expected, replicas: 0, writesToDisk: true });
    expect(probe.last).toMatchObject(expected);
    own.onApplicationShutdown();
    await other.destroy();
  });

  it('is unknown where the server does not say, and nothing is assumed', async () => {
    await connections.command.acl('SETUSER', 'narrow', 'reset', 'on', '>secret', '~*', '+@all', '-config', '-info');
    const own = await connect(server.url.replace('redis://', 'redis://narrow:secret@'));
    expect(await new DurabilityProbe(own).read()).toEqual({
      level: 'unknown',
      mayEvict: undefined,
      maxmemoryPolicy: undefined,
      replicas: undefined,
      writesToDisk: undefined,
    });
    own.onApplicationShutdown();
  });

  it('throws one class while Redis is away', async () => {
    const away = await TestRedis.start();
    const own = await connect(away.url);
    await away.down();
    await expect(new DurabilityProbe(own).read()).rejects.toThrow(RedisUnavailableError);
    own.onApplicationShutdown();
    await away.destroy();
  });
});
