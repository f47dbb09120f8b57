import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { AdmissionOutcome, AdmissionRequest } from './outcomes.js';
import { RegisterRig, startRig } from './test-support/register-rig.js';
import type { TestRedis } from '../../../test/support/services.js';

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
});

const accepted = (orderId: string): AdmissionOutcome => ({ kind: 'ACCEPTED', orderId });
const duplicate = (orderId: string): AdmissionOutcome => ({ kind: 'DUPLICATE', orderId });
const soldOut: AdmissionOutcome = { kind: 'SOLD_OUT' };
const unavailable = (reason: string) => ({ kind: 'UNAVAILABLE', reason });
const buyers = (voucherId: string, count: number, firstUser = 1): AdmissionRequest[] =>
  Array.from({ length: count }, (_, at) => ({
    voucherId,
    userId: String(firstUser + at),
    orderId: String(900_000 + firstUser + at),
  }));
const keysOfServer = async () => (await rig.redis.keys('*')).sort();

describe('one decision', () => {
  it('answers a success with the order id, leaves mark, unit and entry, and the last unit is the last', async () => {
    await rig.publish('17', 1);
    expect(await rig.buy('17', '1', '101')).toEqual(accepted('101'));
    expect(await rig.snapshot('17')).toMatchObject({
      stock: '0',
      marks: { '1': '101' },
      entries: [['userId', '1', 'voucherId', '17', 'id', '101']],
    });
    expect(await rig.buy('17', '2', '102')).toEqual(soldOut);
  });

  it('refuses a voucher that is nowhere, or lacks its stock, and creates no key', async () => {
    const before = await keysOfServer();
    expect(await rig.buy('404', '1', '101')).toEqual({ kind: 'NOT_PUBLISHED' });
    expect(await keysOfServer()).toEqual(before);
    await rig.publish('17', 5);
    await rig.redis.del(rig.keys.stock(0, '17'));
    const withoutStock = await keysOfServer();
    expect(await rig.buy('17', '1', '101')).toEqual({ kind: 'NOT_PUBLISHED' });
    expect(await keysOfServer()).toEqual(withoutStock);
  });

  it('takes a first-time buyer whether marks are absent or hold others, and names the order of one who is marked', async () => {
    await rig.publish('17', 5);
    expect(await rig.buy('17', '1', '101')).toEqual(accepted('101'));
    expect(await rig.buy('17', '2', '102')).toEqual(accepted('102'));
    expect(await rig.buy('17', '1', '103')).toEqual(duplicate('101'));
    expect((await rig.snapshot('17')).stock).toBe('3');
  });

  it('answers ACCEPTED again to the very order id that the mark holds, and applies nothing twice', async () => {
    await rig.publish('17', 1);
    expect(await rig.buy('17', '1', '101')).toEqual(accepted('101'));
    expect(await rig.buy('17', '1', '101')).toEqual(accepted('101'));
    expect(await rig.snapshot('17')).toMatchObject({ stock: '0', marks: { '1': '101' }, entries: { length: 1 } });
  });

  it('keeps one string, two hashes and the stream, and nothing else, per voucher', async () => {
    await rig.publish('1', 5);
    await rig.publish('2', 5);
    await rig.buy('1', '7', '101');
    await rig.buy('1', '8', '102');
    await rig.buy('2', '7', '103');
    const types = await Promise.all((await keysOfServer()).map(async (key) => `${key} ${await rig.redis.type(key)}`));
    expect(types).toEqual([
      'seckill:epoch:{0} string',
      'seckill:order:{0}:1 hash',
      'seckill:order:{0}:2 hash',
      'seckill:sale:{0}:1 hash',
      'seckill:sale:{0}:2 hash',
      'seckill:stock:{0}:1 string',
      'seckill:stock:{0}:2 string',
      'stream.orders:{0} stream',
    ]);
  });

  it('carries ids beyond 2^53 unchanged and never mixes neighbours', async () => {
    const [a, b, c] = ['9007199254740993', '9007199254740992', '9223372036854775807'] as const;
    await rig.publish(c, 5);
    await rig.publish(b, 5);
    expect(await rig.buy(c, a, b)).toEqual(accepted(b));
    expect(await rig.buy(c, b, a)).toEqual(accepted(a));
    expect(await rig.buy(c, a, c)).toEqual(duplicate(b));
    expect((await rig.snapshot(c)).marks).toEqual({ [a]: b, [b]: a });
    expect((await rig.snapshot(b)).marks).toEqual({});
  });

  it('refuses ids that are not canonical before anything is sent', async () => {
    await rig.publish('17', 5);
    for (const id of ['', '0', '-1', '07', ' 7', '7.0', '9223372036854775808', '７']) {
      await expect(rig.buy('17', id, '101'), `user ${id}`).rejects.toThrow(TypeError);
      await expect(rig.buy('17', '1', id), `order ${id}`).rejects.toThrow(TypeError);
      await expect(rig.buy(id, '1', '101'), `voucher ${id}`).rejects.toThrow(TypeError);
    }
    expect(await rig.redis.exists(rig.keys.stream(0))).toBe(0);
  });

  it('says sold out, not inconsistent, where a repair left the stock below 0', async () => {
    await rig.publish('17', 1);
    await rig.buy('17', '1', '101');
    await rig.redis.hset(rig.keys.marks(0, '17'), '2', '102');
    await rig.redis.set(rig.keys.stock(0, '17'), '-1');
    expect(await rig.buy('17', '3', '103')).toEqual(soldOut);
  });
});

describe('what the register cannot trust', () => {
  it.each(['abc', '', '1e3', '0x10', ' 5', '5.0', 'nan', '9'.repeat(400)])(
    'treats the stock "%s" as no number',
    async (stock) => {
      await rig.publish('17', 5);
      await rig.redis.set(rig.keys.stock(0, '17'), stock);
      expect(await rig.buy('17', '1', '101')).toEqual(unavailable('INCONSISTENT'));
      expect(await rig.snapshot('17')).toMatchObject({ stock, marks: {}, entries: [] });
    },
  );

  it('is unavailable where stock + marks differ from the units, whichever of them was touched', async () => {
    for (const touch of [
      () => rig.redis.incr(rig.keys.stock(0, '17')),
      () => rig.redis.hset(rig.keys.marks(0, '17'), '9', '109'),
      () => rig.redis.hincrby(rig.keys.sale(0, '17'), 'units', 1),
    ]) {
      await rig.redis.flushall();
      await rig.openEpoch();
      await rig.publish('17', 5);
      await rig.buy('17', '1', '101');
      await touch();
      expect(await rig.buy('17', '2', '102')).toEqual(unavailable('INCONSISTENT'));
      expect((await rig.snapshot('17')).entries).toHaveLength(1);
    }
  });

  it('is unavailable where the buyers were deleted, so nobody buys twice', async () => {
    await rig.publish('17', 5);
    await rig.buy('17', '1', '101');
    await rig.redis.del(rig.keys.marks(0, '17'));
    expect(await rig.buy('17', '1', '102')).toEqual(unavailable('INCONSISTENT'));
  });

  it.each(['sale', 'stock', 'marks'] as const)('survives another type under the %s key', async (which) => {
    await rig.publish('17', 5);
    await rig.publish('18', 5);
    await rig.redis.del(rig.keys.saleKeys(0, '17')[which]);
    await rig.redis.rpush(rig.keys.saleKeys(0, '17')[which], 'x');
    const outcomes = await rig.register.admit(
      0,
      [
        { voucherId: '17', userId: '1', orderId: '101' },
        { voucherId: '18', userId: '1', orderId: '102' },
      ],
      5000,
    );
    expect(outcomes).toEqual([unavailable('INCONSISTENT'), accepted('102')]);
  });

  it('decides nothing where the stream key is no stream', async () => {
    await rig.publish('17', 5);
    await rig.redis.set(rig.keys.stream(0), 'x');
    expect(await rig.buy('17', '1', '101')).toEqual(unavailable('INCONSISTENT'));
    expect(await rig.redis.get(rig.keys.stock(0, '17'))).toBe('5');
  });

  it('names no order where the mark is no id', async () => {
    await rig.publish('17', 5);
    await rig.redis.hset(rig.keys.marks(0, '17'), '1', 'x');
    await rig.redis.decr(rig.keys.stock(0, '17'));
    expect(await rig.buy('17', '1', '101')).toEqual(unavailable('INCONSISTENT'));
  });

  it('is closed while the epoch is missing, of another history, or of another type', async () => {
    await rig.publish('17', 5);
    for (const spoil of [
      () => rig.redis.del(rig.keys.epoch(0)),
      () => rig.redis.set(rig.keys.epoch(0), 'a'.repeat(40)),
      () => rig.redis.del(rig.keys.epoch(0)).then(() => rig.redis.rpush(rig.keys.epoch(0), 'x')),
    ]) {
      await spoil();
      expect(await rig.buy('17', '1', '101')).toEqual(unavailable('EPOCH'));
    }
    expect(await rig.snapshot('17')).toMatchObject({ stock: '5', marks: {}, entries: [] });
  });
});

describe('precedence', () => {
  const conditions = [
    'epoch',
    'unpublished',
    'inconsistent',
    'early',
    'marked',
    'late',
    'soldOut',
    'overloaded',
  ] as const;
  type Condition = (typeof conditions)[number];
  const answer: Record<Condition, unknown> = {
    epoch: unavailable('EPOCH'),
    unpublished: { kind: 'NOT_PUBLISHED' },
    inconsistent: unavailable('INCONSISTENT'),
    early: { kind: 'NOT_STARTED', beginMs: 9_000_000_000_000 },
    marked: duplicate('555'),
    late: { kind: 'ENDED', endMs: 1000 },
    soldOut,
    overloaded: { kind: 'OVERLOADED' },
  };

  async function arrange(narrow: RegisterRig, holds: ReadonlySet<Condition>): Promise<void> {
    await narrow.redis.flushall();
    if (!holds.has('epoch')) await narrow.openEpoch();
    const { sale, stock, marks } = narrow.keys.saleKeys(0, '17');
    const marked = holds.has('marked') ? 1 : 0;
    const left = holds.has('soldOut') ? 0 : 3;
    const setUp = narrow.redis.multi().xadd(narrow.keys.stream(0), '*', 'a', 'b');
    if (marked === 1) setUp.hset(marks, '1', '555');
    if (holds.has('overloaded')) setUp.xadd(narrow.keys.stream(0), '*', 'a', 'b');
    setUp.set(stock, String(left)).hset(sale, {
      beginMs: holds.has('early') ? '9000000000000' : '0',
      endMs: holds.has('late') ? '1000' : '9000000000001',
      status: 'open',
      units: String(left + marked + (holds.has('inconsistent') ? 1 : 0)),
      unitsVersion: '1',
      version: '1',
    });
    if (holds.has('unpublished')) setUp.del(sale, stock);
    await setUp.exec();
  }

  it('is the same for all 256 combinations of what may hold at once', async () => {
    const narrow = await RegisterRig.connect({ url: server.url, maxBacklog: 2 });
    for (let mask = 0; mask < 2 ** conditions.length; mask++) {
      const holds = new Set(conditions.filter((_, bit) => (mask & (1 << bit)) !== 0));
      await arrange(narrow, holds);
      const first = conditions.find((condition) => holds.has(condition));
      const expected = first === undefined ? accepted('101') : answer[first];
      expect(await narrow.buy('17', '1', '101'), [...holds].join(' ')).toEqual(expected);
    }
    narrow.close();
  });
});

describe('a batch', () => {
  it('is one script call for all purchases of a tick, and one per 1,000', async () => {
    await rig.publish('17', 5000);
    const scriptCalls = async () => {
      const stats = await rig.redis.info('commandstats');
      const calls = [...stats.matchAll(/cmdstat_(?:evalsha|eval):calls=(\d+)/g)];
      return calls.reduce((sum, [, count]) => sum + Number(count), 0);
    };
    await rig.buy('17', '999999', '999999');
    const before = await scriptCalls();
    expect((await rig.register.admit(0, buyers('17', 1000), 5000)).every(({ kind }) => kind === 'ACCEPTED')).toBe(true);
    expect((await scriptCalls()) - before).toBe(1);
    await rig.register.admit(0, buyers('17', 1500, 2000), 5000);
    expect((await scriptCalls()) - before).toBe(3);
    expect(await rig.redis.get(rig.keys.stock(0, '17'))).toBe('2499');
  });

  it('sells exactly the stock, in order of arrival, and sees its own decisions', async () => {
    await rig.publish('17', 2);
    await rig.publish('18', 1);
    const outcomes = await rig.register.admit(
      0,
      [
        { voucherId: '17', userId: '1', orderId: '101' },
        { voucherId: '18', userId: '1', orderId: '102' },
        { voucherId: '17', userId: '1', orderId: '103' },
        { voucherId: '17', userId: '1', orderId: '101' },
        { voucherId: '18', userId: '2', orderId: '104' },
        { voucherId: '17', userId: '2', orderId: '105' },
        { voucherId: '17', userId: '3', orderId: '106' },
        { voucherId: '19', userId: '3', orderId: '107' },
      ],
      5000,
    );
    expect(outcomes).toEqual([
      accepted('101'),
      accepted('102'),
      duplicate('101'),
      accepted('101'),
      soldOut,
      accepted('105'),
      soldOut,
      { kind: 'NOT_PUBLISHED' },
    ]);
    expect(await rig.snapshot('17')).toMatchObject({ stock: '0', marks: { '1': '101', '2': '105' } });
    expect((await rig.snapshot('17')).entries.map((flat) => flat[5])).toEqual(['101', '105']);
  });

  it.each([1, 2, 100])('sells exactly %i to many more who come at once', async (units) => {
    await rig.publish('17', units);
    const outcomes = await Promise.all(buyers('17', units + 50).map((one) => rig.buy('17', one.userId, one.orderId)));
    expect(outcomes.filter(({ kind }) => kind === 'ACCEPTED')).toHaveLength(units);
    expect(await rig.redis.get(rig.keys.stock(0, '17'))).toBe('0');
  });

  it('does not let one user who keeps clicking empty the stock', async () => {
    await rig.publish('17', 5);
    const clicks = Array.from({ length: 500 }, (_, at) => ({
      voucherId: '17',
      userId: '1',
      orderId: String(1000 + at),
    }));
    const outcomes = await rig.register.admit(0, clicks, 5000);
    expect(outcomes[0]).toEqual(accepted('1000'));
    expect(outcomes.slice(1).every((outcome) => outcome.kind === 'DUPLICATE' && outcome.orderId === '1000')).toBe(true);
    expect(await rig.register.admit(0, buyers('17', 4, 10), 5000)).toEqual(
      buyers('17', 4, 10).map((one) => accepted(one.orderId)),
    );
  });

  it('is empty for an empty list, and not sent where no time is left', async () => {
    await rig.publish('17', 5);
    expect(await rig.register.admit(0, [], 5000)).toEqual([]);
    expect(await rig.buy('17', '1', '101', 0)).toEqual(unavailable('NOT_SENT'));
    expect((await rig.snapshot('17')).stock).toBe('5');
  });
});

describe('a full backlog', () => {
  let narrow: RegisterRig;
  beforeEach(async () => {
    narrow = await RegisterRig.connect({ url: server.url, maxBacklog: 3 });
    await narrow.publish('17', 10);
  });
  const kinds = (outcomes: readonly AdmissionOutcome[]) => outcomes.map(({ kind }) => kind);

  it('refuses only what would have been accepted, also within one batch', async () => {
    const outcomes = await narrow.register.admit(
      0,
      [...buyers('17', 5), { voucherId: '17', userId: '1', orderId: '7' }],
      5000,
    );
    expect(kinds(outcomes)).toEqual(['ACCEPTED', 'ACCEPTED', 'ACCEPTED', 'OVERLOADED', 'OVERLOADED', 'DUPLICATE']);
    expect(await narrow.snapshot('17')).toMatchObject({ stock: '7', entries: { length: 3 } });
    narrow.close();
  });

  it('counts undelivered and pending entries, not finished ones that still lie in the stream', async () => {
    await narrow.log.ensureGroup(0);
    await narrow.register.admit(0, buyers('17', 3), 5000);
    const [first] = await narrow.read('c', 3);
    expect((await narrow.buy('17', '8', '808')).kind).toBe('OVERLOADED');
    await narrow.redis.xack(narrow.keys.stream(0), narrow.keys.group, first as string);
    expect(await narrow.redis.xlen(narrow.keys.stream(0))).toBe(3);
    expect((await narrow.buy('17', '8', '808')).kind).toBe('ACCEPTED');
    expect((await narrow.buy('17', '9', '809')).kind).toBe('OVERLOADED');
    narrow.close();
  });

  it('takes the count from outside where the server cannot tell, keeps it up to date, and else takes all entries', async () => {
    await narrow.log.ensureGroup(0);
    await narrow.register.admit(0, buyers('17', 3), 5000);
    const ids = await narrow.read('c', 2);
    await narrow.redis.xack(narrow.keys.stream(0), narrow.keys.group, ...ids);
    const [, , third] = await narrow.redis.xrange(narrow.keys.stream(0), '-', '+');
    await narrow.redis.xadd(narrow.keys.stream(0), '*', 'a', 'b');
    await narrow.redis.xdel(narrow.keys.stream(0), (third as [string, string[]])[0]);
    expect(await narrow.log.stats(0)).toMatchObject({ lag: undefined, length: 3, pending: 0 });
    expect((await narrow.buy('17', '8', '808')).kind).toBe('OVERLOADED');
    // The refusal itself has it counted: one undelivered entry.
    await expect.poll(() => narrow.redis.get(narrow.keys.backlog(0))).toBe('1');
    expect(kinds(await narrow.register.admit(0, buyers('17', 3, 20), 5000))).toEqual([
      'ACCEPTED',
      'ACCEPTED',
      'OVERLOADED',
    ]);
    expect(await narrow.redis.get(narrow.keys.backlog(0))).toBe('3');
    expect(await narrow.redis.pttl(narrow.keys.backlog(0))).toBeGreaterThan(0);
    narrow.close();
  });
});

describe('a refused write', () => {
  const withdrawn = async (...commands: string[]) => {
    await rig.redis.acl(
      'SETUSER',
      'narrow',
      'reset',
      'on',
      '>secret',
      '~*',
      '&*',
      '+@all',
      ...commands.map((each) => `-${each}`),
    );
    return RegisterRig.connect({ url: server.url.replace('redis://', 'redis://narrow:secret@') });
  };

  it.each(['xadd', 'hset', 'decrby'])(
    'undoes the earlier writes of the call where %s is withdrawn',
    async (command) => {
      await rig.publish('17', 5);
      await rig.publish('18', 5);
      await rig.buy('17', '1', '101');
      const before = [await rig.snapshot('17'), await rig.snapshot('18')];
      const narrow = await withdrawn(command);
      const batch = [...buyers('17', 2, 10), ...buyers('18', 2, 20)];
      expect(await narrow.register.admit(0, batch, 5000)).toEqual(batch.map(() => unavailable('REFUSED_WRITE')));
      expect([await rig.snapshot('17'), await rig.snapshot('18')]).toEqual(before);
      expect(await narrow.buy('17', '1', '102')).toEqual(duplicate('101'));
      narrow.close();
    },
  );

  it('undoes a first voucher whole where the second one is refused', async () => {
    await rig.publish('17', 5);
    await rig.publish('18', 5);
    await rig.redis.acl('SETUSER', 'narrow', 'reset', 'on', '>secret', '~*', '&*', '+@all', '-hset');
    await rig.redis.acl('SETUSER', 'narrow', 'clearselectors', `(~${rig.keys.marks(0, '17')} +hset)`);
    const narrow = await RegisterRig.connect({ url: server.url.replace('redis://', 'redis://narrow:secret@') });
    expect(await narrow.register.admit(0, [...buyers('17', 2), ...buyers('18', 1)], 5000)).toEqual([
      unavailable('REFUSED_WRITE'),
      unavailable('REFUSED_WRITE'),
      unavailable('REFUSED_WRITE'),
    ]);
    for (const voucherId of ['17', '18']) {
      expect(await rig.snapshot(voucherId)).toMatchObject({ stock: '5', marks: {}, entries: [] });
    }
    narrow.close();
  });

  it('says that nobody knows where the undoing is refused too', async () => {
    await rig.publish('17', 5);
    const narrow = await withdrawn('hset', 'xdel');
    expect(await narrow.buy('17', '1', '101')).toEqual({ kind: 'OUTCOME_UNKNOWN', candidateOrderId: '101' });
    narrow.close();
  });

  it.each(['info', 'time', 'hmget', 'get', 'hlen', 'xlen'])(
    'decides nothing where the read %s is withdrawn',
    async (command) => {
      await rig.publish('17', 5);
      await rig.buy('17', '9', '909');
      const narrow = await withdrawn(command);
      const { kind } = await narrow.buy('17', '1', '101');
      expect(kind).toBe('UNAVAILABLE');
      expect((await rig.snapshot('17')).stock).toBe('4');
      narrow.close();
    },
  );
});
