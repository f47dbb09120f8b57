import { rmSync } from 'node:fs';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { RegisterRig, startRig } from './test-support/register-rig.js';
import { TestRedis } from '../../../test/support/services.js';

const unavailable = (reason: string) => ({ kind: 'UNAVAILABLE', reason });
const SERVER_STATE = unavailable('SERVER_STATE');

describe('server states', () => {
  let server: TestRedis;
  let rig: RegisterRig;
  let stop: () => Promise<void>;
  beforeAll(async () => {
    ({ server, rig, stop } = await startRig());
  });
  afterAll(() => stop());
  beforeEach(async () => {
    await rig.redis.flushall();
    await rig.openEpoch();
    await rig.publish('17', 5);
    await rig.buy('17', '9', '909');
  });
  const untouched = async () =>
    expect(await rig.snapshot('17')).toMatchObject({ stock: '4', marks: { '9': '909' }, entries: { length: 1 } });

  it('refuses without effect while Redis is full, and goes on afterwards', async () => {
    await rig.redis.config('SET', 'maxmemory', '1');
    expect(await rig.buy('17', '1', '101')).toEqual(SERVER_STATE);
    await rig.redis.config('SET', 'maxmemory', '0');
    await untouched();
    expect(await rig.buy('17', '1', '101')).toMatchObject({ kind: 'ACCEPTED' });
  });

  it('refuses without effect while too few replicas are connected', async () => {
    await rig.redis.config('SET', 'min-replicas-to-write', '1');
    expect(await rig.buy('17', '1', '101')).toEqual(SERVER_STATE);
    await rig.redis.config('SET', 'min-replicas-to-write', '0');
    await untouched();
  });

  it('refuses without effect while the server is a read-only replica, then closes the epoch, then goes on', async () => {
    await rig.redis.replicaof('127.0.0.1', '1');
    // The driver may reconnect once on READONLY: then nothing is sent for a moment.
    const outcome = await rig.buy('17', '1', '101');
    expect([SERVER_STATE, unavailable('NOT_SENT')]).toContainEqual(outcome);
    expect(await rig.connections.whenReady(10_000)).toBe(true);
    await rig.redis.replicaof('NO', 'ONE');
    await untouched();
    await expect.poll(() => rig.buy('17', '1', '101'), { timeout: 10_000 }).toEqual(unavailable('EPOCH'));
    await rig.openEpoch();
    expect(await rig.buy('17', '1', '101')).toMatchObject({ kind: 'ACCEPTED' });
  });

  it('refuses without effect while another script holds the server', async () => {
    await rig.redis.config('SET', 'busy-reply-threshold', '50');
    const other = new Redis(server.url);
    const endless = other.eval('while true do end', 0).catch((error: unknown) => error);
    await expect
      .poll(() => rig.redis.ping().catch((error: Error) => error.message), { timeout: 10_000 })
      .toMatch(/^BUSY/);
    expect(await rig.buy('17', '1', '101')).toEqual(SERVER_STATE);
    await rig.redis.script('KILL');
    expect(await endless).toBeInstanceOf(Error);
    other.disconnect();
    await untouched();
    expect(await rig.buy('17', '1', '101')).toMatchObject({ kind: 'ACCEPTED' });
  });

  it('refuses without effect where the right to run scripts is withdrawn', async () => {
    await rig.redis.acl('SETUSER', 'narrow', 'reset', 'on', '>secret', '~*', '&*', '+@all', '-@scripting');
    const narrow = await RegisterRig.connect({ url: server.url.replace('redis://', 'redis://narrow:secret@') });
    expect(await narrow.buy('17', '1', '101')).toEqual(SERVER_STATE);
    narrow.close();
    await untouched();
  });

  it('decides every purchase although the script cache is flushed again and again', async () => {
    await rig.register.restock(0, { voucherId: '17', units: 1000, unitsVersion: 2 });
    const outcomes = await Promise.all(
      Array.from({ length: 200 }, async (_, at) => {
        if (at % 5 === 0) await rig.redis.script('FLUSH');
        return rig.buy('17', String(at + 10), String(at + 1000));
      }),
    );
    expect(outcomes.every(({ kind }) => kind === 'ACCEPTED')).toBe(true);
    expect((await rig.snapshot('17')).entries).toHaveLength(201);
  });
});

it('refuses without effect while Redis cannot save', async () => {
  const { rig, stop } = await startRig();
  await rig.publish('17', 5);
  const [, dir] = (await rig.redis.config('GET', 'dir')) as [string, string];
  rmSync(dir, { recursive: true });
  await rig.redis.config('SET', 'save', '3600 1');
  await rig.redis.bgsave();
  await expect.poll(() => rig.redis.info('persistence'), { timeout: 10_000 }).toContain('rdb_last_bgsave_status:err');
  expect(await rig.buy('17', '1', '101')).toEqual(SERVER_STATE);
  expect((await rig.snapshot('17')).entries).toEqual([]);
  await rig.redis.config('SET', 'stop-writes-on-bgsave-error', 'no');
  expect(await rig.buy('17', '1', '101')).toMatchObject({ kind: 'ACCEPTED' });
  await stop();
});

describe('a connection that is lost or half dead', () => {
  let server: TestRedis;
  let rig: RegisterRig;
  let stop: () => Promise<void>;
  beforeEach(async () => {
    ({ server, rig, stop } = await startRig({ requestTimeoutMs: 600 }));
    await rig.publish('17', 5);
  });
  afterEach(() => stop());

  it('answers OUTCOME_UNKNOWN in time while the server is frozen, NOT_SENT once that is noticed, and the retry finds that order', async () => {
    await rig.buy('17', '9', '909');
    server.signal('SIGSTOP');
    expect(await rig.buy('17', '1', '101', 300)).toEqual({ kind: 'OUTCOME_UNKNOWN', candidateOrderId: '101' });
    await expect.poll(() => rig.buy('17', '2', '102', 300), { timeout: 10_000 }).toEqual(unavailable('NOT_SENT'));
    server.signal('SIGCONT');
    await expect
      .poll(() => rig.buy('17', '1', '103', 500), { timeout: 10_000 })
      .toEqual({ kind: 'DUPLICATE', orderId: '101' });
  });

  it('sends nothing while the server is away, executes nothing of it later, and resumes by itself', async () => {
    await server.down();
    await expect.poll(() => rig.connections.isReady(rig.connections.admission)).toBe(false);
    for (let user = 1; user <= 50; user++) {
      expect(await rig.buy('17', String(user), String(user + 100))).toEqual(unavailable('NOT_SENT'));
    }
    await server.up();
    expect(await rig.connections.whenReady(10_000)).toBe(true);
    await rig.openEpoch();
    expect(await rig.snapshot('17')).toMatchObject({ stock: '5', marks: {}, entries: [] });
    expect(await rig.buy('17', '1', '101')).toMatchObject({ kind: 'ACCEPTED' });
  });

  it('sends nothing while the server loads its data, and resumes when it has', async () => {
    const slow = await TestRedis.start(['--key-load-delay', '100']);
    const own = await RegisterRig.connect({ url: slow.url, requestTimeoutMs: 600 });
    await own.redis.eval("for i = 1, 10000 do redis.call('SET', 'filler' .. i, 'x') end", 0);
    await slow.down();
    const loaded = slow.up();
    await expect.poll(() => own.redis.status, { timeout: 10_000, interval: 5 }).toBe('connect');
    expect(await own.buy('17', '1', '101')).toEqual(unavailable('NOT_SENT'));
    await loaded;
    expect(await own.connections.whenReady(10_000)).toBe(true);
    expect(await own.buy('17', '1', '101')).toEqual(unavailable('EPOCH'));
    own.close();
    await slow.destroy();
  });

  it('answers OUTCOME_UNKNOWN with the candidate where the connection is cut before the reply', async () => {
    const spy = vi.spyOn(rig.connections.admission, 'evalsha').mockRejectedValue(new Error('Connection is closed.'));
    expect(await rig.buy('17', '1', '101')).toEqual({ kind: 'OUTCOME_UNKNOWN', candidateOrderId: '101' });
    spy.mockRestore();
  });

  it('takes a reply outside the contract, or a script error, for unknown, and never throws', async () => {
    for (const reply of [null, 'OK', [9], [0], [0, 1, 2, 99], [0, 1, 2, 3, 4]]) {
      const spy = vi.spyOn(rig.connections.admission, 'evalsha').mockResolvedValue(reply);
      expect(await rig.buy('17', '1', '101')).toEqual({ kind: 'OUTCOME_UNKNOWN', candidateOrderId: '101' });
      spy.mockRestore();
    }
    const spy = vi.spyOn(rig.connections.admission, 'evalsha').mockRejectedValue(new Error('ERR user_script:5: bad'));
    expect(await rig.buy('17', '1', '101')).toEqual({ kind: 'OUTCOME_UNKNOWN', candidateOrderId: '101' });
    spy.mockRestore();
  });
});

describe('durability "replica"', () => {
  let primary: TestRedis;
  let replica: TestRedis;
  let rig: RegisterRig;
  beforeAll(async () => {
    primary = await TestRedis.start(['--repl-diskless-sync-delay', '0']);
    replica = await TestRedis.start(['--replicaof', '127.0.0.1', String(primary.port)]);
    rig = await RegisterRig.connect({ url: primary.url, durability: 'replica' });
    await vi.waitFor(async () => expect(await rig.redis.info('replication')).toContain('state=online'), 15_000);
    await rig.openEpoch();
    await rig.publish('17', 5);
    await rig.publish('18', 0);
  });
  afterAll(async () => {
    rig.close();
    await replica.destroy();
    await primary.destroy();
  });

  it('names an order only once a replica has it; refusals stand without', async () => {
    await rig.buy('404', '1', '100');
    await rig.redis.config('RESETSTAT');
    expect(await rig.buy('17', '1', '101')).toEqual({ kind: 'ACCEPTED', orderId: '101' });
    expect(await rig.redis.info('commandstats')).toMatch(/cmdstat_wait:calls=1,/);
    replica.signal('SIGSTOP');
    const outcomes = await rig.register.admit(
      0,
      [
        { voucherId: '17', userId: '2', orderId: '102' },
        { voucherId: '17', userId: '1', orderId: '103' },
        { voucherId: '18', userId: '1', orderId: '104' },
        { voucherId: '404', userId: '1', orderId: '105' },
      ],
      400,
    );
    expect(outcomes).toEqual([
      { kind: 'OUTCOME_UNKNOWN', candidateOrderId: '102' },
      { kind: 'OUTCOME_UNKNOWN', candidateOrderId: '101' },
      { kind: 'SOLD_OUT' },
      { kind: 'NOT_PUBLISHED' },
    ]);
    replica.signal('SIGCONT');
    await expect
      .poll(() => rig.buy('17', '2', '106', 1000), { timeout: 10_000 })
      .toEqual({ kind: 'DUPLICATE', orderId: '102' });
  });

  it('waits for each batch in turn, and sends none whose time has passed', async () => {
    replica.signal('SIGSTOP');
    const [first, second] = await Promise.all([rig.buy('17', '3', '303', 300), rig.buy('17', '4', '304', 50)]);
    expect(first).toEqual({ kind: 'OUTCOME_UNKNOWN', candidateOrderId: '303' });
    expect(second).toEqual(unavailable('NOT_SENT'));
    replica.signal('SIGCONT');
    expect(await rig.redis.hget(rig.keys.marks(0, '17'), '4')).toBeNull();
  });

  it('recovers from a flushed script cache inside the pipeline', async () => {
    await rig.redis.script('FLUSH');
    expect(await rig.buy('17', '5', '305')).toEqual({ kind: 'ACCEPTED', orderId: '305' });
    expect((await rig.snapshot('17')).entries.filter((flat) => flat[5] === '305')).toHaveLength(1);
  });
});
