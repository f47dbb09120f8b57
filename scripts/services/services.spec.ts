import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync, chmodSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jwtVerify } from 'jose';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { urlOf } from './api-server.mjs';
import { banner, curlLine, withoutPassword } from './banner.mjs';
import { dataFolder, keptSecret, logTail, rotateLog } from './data-folder.mjs';
import { freePort } from './free-port.mjs';
import { isOnSale } from './demo-voucher.mjs';
import { listeners, listenFault, mayListen, portOwner } from './port-owner.mjs';
import { canReach } from './postgres-account.mjs';
import { postgresFailure, startPostgres } from './postgres-server.mjs';
import { endMarked, endProcess, identify, isLiving } from './process-identity.mjs';
import { redisFailure, startRedis } from './redis-server.mjs';
import { endLeftovers, readRunFile, runningStart, writeRunFile } from './run-file.mjs';
import { isUserId, signToken } from './signed-token.mjs';
import { SupervisedService } from './supervised-service.mjs';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'flash-sale-services-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const sleeper = (env: Record<string, string> = {}) =>
  spawn('sleep', ['300'], { detached: true, stdio: 'ignore', env: { ...process.env, ...env } });

describe('a token', () => {
  const secret = 'a secret of the tests, long enough';
  it('is accepted by an independent library, with subject, role and end', async () => {
    const token = signToken({ secret, user: '42', role: 'admin', lifeSeconds: 60 });
    const { payload, protectedHeader } = await jwtVerify(token, new TextEncoder().encode(secret));
    expect(protectedHeader.alg).toBe('HS256');
    expect(payload).toMatchObject({ sub: '42', role: 'admin' });
    expect(Number(payload.exp) - Number(payload.iat)).toBe(60);
  });
  it('of a buyer has no role', async () => {
    const { payload } = await jwtVerify(signToken({ secret, user: '42' }), new TextEncoder().encode(secret));
    expect(payload).not.toHaveProperty('role');
  });
  it('is made for ids only', () => {
    for (const id of ['1', '42', '9223372036854775807']) expect(isUserId(id)).toBe(true);
    for (const id of ['', '0', '042', '-1', ' 1', '1e3', '9223372036854775808', '99999999999999999999']) {
      expect(isUserId(id)).toBe(false);
    }
  });
});

describe('a kept secret', () => {
  it('is random, stays the same, and is readable by its owner only', () => {
    const file = join(folder, 'deep/secret');
    const secret = keptSecret(file);
    expect(keptSecret(file)).toBe(secret);
    expect(secret.length).toBeGreaterThanOrEqual(43);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(keptSecret(join(folder, 'other'))).not.toBe(secret);
  });
});

describe('a log', () => {
  it('is set aside when it has outgrown its limit, and not before', () => {
    const file = join(folder, 'a.log');
    writeFileSync(file, 'small');
    rotateLog(file);
    expect(logTail(file, 2)).toBe('all');
    writeFileSync(file, Buffer.alloc(21 * 1024 * 1024));
    rotateLog(file);
    expect(existsSync(file)).toBe(false);
    expect(existsSync(`${file}.1`)).toBe(true);
  });
});

describe('a process', () => {
  it('is told from a later one with its pid, and ends when told to', async () => {
    const child = sleeper();
    const identity = identify(child.pid);
    if (identity === undefined) throw new Error('it lives');
    expect(isLiving({ ...identity, startedAt: 'another time' })).toBe(false);
    expect(isLiving(identity)).toBe(true);
    expect(await endProcess(identity, [{ signal: 'SIGTERM', limitMs: 5000 }])).toBe(true);
    expect(identify(child.pid)).toBeUndefined();
  });
  it('that ignores its signal is killed', async () => {
    const child = spawn('sh', ['-c', 'trap "" TERM; echo ready; while :; do sleep 1; done'], { detached: true });
    await new Promise((resolve) => child.stdout.once('data', resolve));
    const identity = identify(child.pid);
    if (identity === undefined) throw new Error('it lives');
    expect(await endProcess(identity, [{ signal: 'SIGTERM', limitMs: 100 }])).toBe(false);
    expect(isLiving(identity)).toBe(false);
  });
  it.runIf(process.platform === 'linux')('is found by the mark in its environment, and no other is', async () => {
    const mark = `FLASH_SALE_SPEC_${process.pid}`;
    const marked = sleeper({ [mark]: 'yes' });
    const other = sleeper();
    const ended = new Promise((resolve) => marked.once('exit', resolve));
    await vi.waitFor(async () => expect(await endMarked(`${mark}=yes`)).toEqual([`sleep (pid ${marked.pid})`]));
    await ended;
    expect(identify(other.pid)).toBeDefined();
    other.kill('SIGKILL');
  });
});

describe('what a killed start left running', () => {
  it('is ended by the next one, and nothing is while the start lives', async () => {
    const file = join(folder, 'run.json');
    const child = sleeper();
    writeRunFile(file, [{ name: 'Redis', pid: Number(child.pid) }]);
    expect(runningStart(file)?.processes).toHaveLength(1);
    expect(await endLeftovers(file)).toEqual([]);
    const run = readRunFile(file);
    writeFileSync(file, JSON.stringify({ ...run, supervisor: { pid: process.pid, startedAt: 'another time' } }));
    expect(runningStart(file)).toBeUndefined();
    expect(await endLeftovers(file)).toEqual([`Redis (pid ${child.pid})`]);
    expect(identify(child.pid)).toBeUndefined();
    expect(existsSync(file)).toBe(false);
  });
});

describe('a supervised service', () => {
  const stopSteps = [{ signal: 'SIGTERM' as const, limitMs: 5000 }];
  const begin = (onSpawn: (child: ReturnType<typeof sleeper>) => void) => {
    const child = sleeper();
    onSpawn(child);
    return Promise.resolve(child);
  };

  it('is started again when it is killed, and is gone after the stop', async () => {
    const events: string[] = [];
    const service = new SupervisedService({
      name: 'Sleep',
      start: begin,
      stopSteps,
      onEvent: (line) => events.push(line),
    });
    await service.start();
    const first = service.pid;
    process.kill(Number(first), 'SIGKILL');
    await vi.waitFor(() => expect(events.at(-1)).toMatch(/^Sleep runs again/), { timeout: 10_000 });
    const second = service.pid;
    expect(second).not.toBe(first);
    await service.stop();
    await service.stop();
    expect(identify(second)).toBeUndefined();
  });
  it('that may not be started again names its end', async () => {
    const service = new SupervisedService({ name: 'Sleep', start: begin, stopSteps, restarts: false });
    await service.start();
    process.kill(Number(service.pid), 'SIGKILL');
    expect(await service.fallen).toMatch(/^Sleep \(pid \d+\) ended by itself: SIGKILL/);
  });
  it('ends when it is stopped before it is ready', async () => {
    let pid: number | undefined;
    const service = new SupervisedService({
      name: 'Sleep',
      stopSteps,
      start: (onSpawn) => {
        const child = sleeper();
        pid = child.pid;
        onSpawn(child);
        return new Promise((_, reject) => child.once('exit', () => reject(new Error('ended'))));
      },
    });
    const refused = expect(service.start()).rejects.toThrow('ended');
    await service.stop();
    await refused;
    expect(identify(pid)).toBeUndefined();
  });
});

describe('a port', () => {
  it('is told to one only, however many ask at once', async () => {
    const ports = await Promise.all(Array.from({ length: 1_000 }, () => freePort()));
    expect(new Set(ports).size).toBe(1_000);
  });

  it('that is free lies below those that the system hands out, and so does the bus of a cluster node', async () => {
    const ports = await Promise.all(Array.from({ length: 50 }, () => freePort()));
    expect(Math.max(...ports)).toBeLessThan(32_768);
    const nodes = await Promise.all(Array.from({ length: 50 }, () => freePort({ clusterBus: true })));
    expect(Math.max(...nodes) + 10_000).toBeLessThan(32_768);
  });

  it('that is taken is seen, with who holds it', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    expect(await listenFault('127.0.0.1', port)).toBe('EADDRINUSE');
    expect(mayListen(port, process.pid)).toBe(true);
    if (process.platform === 'linux') {
      expect(portOwner(port)).toMatch(new RegExp(`^pid ${process.pid} \\(`));
      expect(mayListen(port, process.pid + 1)).toBe(false);
    }
    await new Promise((resolve) => server.close(resolve));
    expect(await listenFault('127.0.0.1', port)).toBeUndefined();
  });
  it('is read from the table of the kernel', () => {
    const table = [
      '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode',
      '   0: 0100007F:0BB8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1',
      '   1: 0100007F:0BB8 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1000        0 4712 1',
    ].join('\n');
    expect(listeners(table, 3000)).toEqual([{ inode: '4711', uid: '1000' }]);
    expect(listeners(table, 3001)).toEqual([]);
  });
});

describe('the demo voucher', () => {
  const nowMs = Date.parse('2026-11-30T12:00:00Z');
  const voucher = {
    voucherId: '1',
    title: 'Demo: 100 for 80',
    beginTime: '2026-11-30T11:59:00Z',
    endTime: '2026-12-30T12:00:00Z',
    unitsLeft: 7,
  };
  it('is used again while its window is open and units are left', () => {
    expect(isOnSale(voucher, nowMs)).toBe(true);
    expect(isOnSale({ ...voucher, unitsLeft: 0 }, nowMs)).toBe(false);
    expect(isOnSale({ ...voucher, endTime: '2026-11-30T12:30:00Z' }, nowMs)).toBe(false);
    expect(isOnSale({ ...voucher, beginTime: '2026-11-30T12:01:00Z' }, nowMs)).toBe(false);
    expect(isOnSale({ ...voucher, title: 'Lunch' }, nowMs)).toBe(false);
  });
});

describe('the banner', () => {
  const report = {
    ...{ url: 'http://127.0.0.1:3000', docs: 'D', metrics: 'M', health: 'H', pid: 7, dataDir: '/d', dataKept: true },
    ...{ durability: 'always', redisUrl: 'redis://r', databaseUrl: 'postgres://p', logDir: '/l', voucherId: '1' },
    ...{ buyerId: '5', buyerToken: 'BUYER', adminToken: 'ADMIN' },
  };
  it('names everything and ends with the one line that buys', () => {
    const curl = curlLine({ url: report.url, voucherId: '1', buyerToken: 'BUYER' });
    const lines = banner({ ...report, curl }, { host: '127.0.0.1', secretNote: 'dev secret' })
      .trim()
      .split('\n');
    expect(lines.at(-1)).toBe(
      "curl -sS -i -X POST http://127.0.0.1:3000/v1/vouchers/1/orders -H 'Authorization: Bearer BUYER'",
    );
    for (const word of [
      'API',
      'Docs',
      'Metrics',
      'Health',
      'kept',
      'Durability',
      'BUYER',
      'ADMIN',
      'Ctrl+C',
      'dev secret',
    ]) {
      expect(lines.join('\n')).toContain(word);
    }
  });
  it('warns where other machines can reach the service', () => {
    const text = banner({ ...report, curl: 'curl' }, { host: '0.0.0.0', secretNote: 'dev secret' });
    expect(text).toContain('OTHER MACHINES');
  });
  it('says where Redis is, also where it has several nodes', () => {
    const where = (redis: object) =>
      /Redis +(.+)/.exec(banner({ ...report, curl: 'curl', ...redis }, { host: '127.0.0.1', secretNote: '' }))?.[1];
    expect(where({})).toBe('redis://r');
    expect(where({ redisUrl: undefined, redisClusterNodes: 'a:1,b:2' })).toBe('cluster a:1,b:2');
    expect(where({ redisUrl: undefined, redisSentinels: 'a:1,b:2', redisMasterName: 'mymaster' })).toBe(
      'mymaster of the sentinels a:1,b:2',
    );
  });
  it('shows no password of a server that is not ours', () => {
    expect(withoutPassword('postgres://u:secret@h:5432/d')).toBe('postgres://u:***@h:5432/d');
    expect(withoutPassword('no address with a secret')).not.toContain('secret');
  });
  it('names an address that this machine can reach', () => {
    expect(urlOf('0.0.0.0', 80)).toBe('http://127.0.0.1:80');
    expect(urlOf('::', 80)).toBe('http://[::1]:80');
    expect(urlOf('10.0.0.7', 80)).toBe('http://10.0.0.7:80');
  });
});

describe('a database folder', () => {
  it('of another version is refused with both versions', async () => {
    const dir = join(folder, 'postgres');
    mkdirSync(dir);
    writeFileSync(join(dir, 'PG_VERSION'), '13\n');
    await expect(startPostgres({ dir, port: 1 })).rejects.toMatchObject({
      why: expect.stringMatching(/written by PostgreSQL 13, this is PostgreSQL \d+/) as string,
      next: expect.stringContaining('npm run reset') as string,
    });
  });
  it('that holds something else is left alone', async () => {
    const dir = join(folder, 'postgres');
    mkdirSync(dir);
    writeFileSync(join(dir, 'mine.txt'), 'mine');
    await expect(startPostgres({ dir, port: 1 })).rejects.toMatchObject({ what: 'The database folder is damaged' });
    expect(existsSync(join(dir, 'mine.txt'))).toBe(true);
  });
  it('is out of reach for others below a closed folder', () => {
    // Whoever runs the tests, these are not his.
    const others = { uid: (process.getuid?.() ?? 0) + 1, gid: (process.getgid?.() ?? 0) + 1 };
    const inner = join(folder, 'closed/inner');
    mkdirSync(inner, { recursive: true });
    chmodSync(folder, 0o755);
    expect(canReach(inner, others)).toBe(true);
    chmodSync(join(folder, 'closed'), 0o700);
    expect(canReach(inner, others)).toBe(false);
  });
});

describe('a store that does not start', () => {
  const places = { dir: '/d', logFile: '/l' };
  it.each([
    ['FATAL:  could not write lock file "postmaster.pid": No space left on device', /space/],
    ['FATAL:  data directory "/d" has wrong ownership', /right/],
    ['PANIC:  could not locate a valid checkpoint record', /npm run reset/],
    ['FATAL:  something new', /log/],
  ])('PostgreSQL: %s', (output, next) => {
    const failure = postgresFailure(`LOG:  starting\n${output}\nLOG:  bye`, 'code 1', places);
    expect(failure.why).toBe(output);
    expect(failure.next).toMatch(next);
  });
  it.each([
    ["Can't open the append-only file: Permission denied", /right/],
    ["Can't handle RDB format version 12", /newer Redis/],
    ['Bad file format reading the append only file', /redis-check-aof/],
    ['', /log/],
  ])('Redis: %s', (output, next) => {
    expect(redisFailure(output, 'code 1', places).next).toMatch(next);
  });
  it('carries its own last words', async () => {
    const failing = startRedis({ dir: folder, port: 1, args: ['--no-such-setting', 'yes'] });
    await expect(failing).rejects.toMatchObject({ why: expect.stringContaining('no-such-setting') as string });
  });
});

describe('the data folder', () => {
  it('keeps all its places inside', () => {
    expect(Object.values(dataFolder('/d')).every((place) => place.startsWith('/d'))).toBe(true);
  });
});
