import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { EpochState, RebuildRequest } from './epoch.types.js';
import { RegisterRig, startRig } from './test-support/register-rig.js';
import type { TestRedis } from '../../../test/support/services.js';

let server: TestRedis;
let rig: RegisterRig;
let stop: () => Promise<void>;
let epoch: string;
beforeAll(async () => {
  ({ server, rig, stop } = await startRig());
});
afterAll(() => stop());
beforeEach(async () => {
  await rig.redis.flushall();
  epoch = await rig.openEpoch();
});

const terms = { voucherId: '17', beginMs: 1000, endMs: 9_000_000_000_000, units: 5, unitsVersion: 1 };
const order = { voucherId: '17', userId: '1', orderId: '101' };
const token = 'token123';
const begun = async (expected: string | undefined, name = token): Promise<string> => {
  const outcome = await rig.epoch.begin(0, name, expected);
  if (outcome.kind !== 'BEGUN') throw new Error(outcome.kind);
  return outcome.value;
};

describe('the epoch', () => {
  it("is open on the server's own history only", async () => {
    expect(epoch).toMatch(/^[0-9a-f]{40}$/);
    expect(await rig.epoch.state(0)).toEqual({ kind: 'OPEN', value: epoch });
    await rig.redis.set(rig.keys.epoch(0), 'b'.repeat(40));
    expect(await rig.epoch.state(0)).toEqual({ kind: 'CLOSED', value: 'b'.repeat(40) });
    await rig.redis.del(rig.keys.epoch(0));
    expect(await rig.epoch.state(0)).toEqual({ kind: 'CLOSED', value: undefined });
  });

  it('names a user that may not ask INFO, which no rebuild heals', async () => {
    await rig.redis.acl('SETUSER', 'narrow', 'reset', 'on', '>secret', '~*', '&*', '+@all', '-info');
    const narrow = await RegisterRig.connect({ url: server.url.replace('redis://', 'redis://narrow:secret@') });
    expect(await narrow.epoch.state(0)).toEqual({ kind: 'NO_RIGHT' });
    expect(await narrow.epoch.begin(0, token, epoch)).toEqual({ kind: 'NO_RIGHT' });
    expect(await narrow.buy('17', '1', '101')).toEqual({ kind: 'UNAVAILABLE', reason: 'SERVER_STATE' });
    narrow.close();
  });

  it('begins only from the value that the reconciler saw, and opens only for the one that holds it', async () => {
    expect(await rig.epoch.begin(0, token, 'c'.repeat(40))).toEqual({ kind: 'CHANGED', value: epoch });
    const first = await begun(epoch, 'first000');
    const state = await rig.epoch.state(0);
    expect(state).toEqual({
      kind: 'RECONCILING',
      value: first,
      token: 'first000',
      sameServer: true,
    } satisfies EpochState);
    const second = await begun(first, 'second00');
    expect(await rig.epoch.open(0, first, [])).toEqual({ kind: 'LOST' });
    expect(await rig.epoch.open(0, second, [])).toEqual({ kind: 'OPENED', value: epoch });
    expect(await rig.epoch.open(0, second, [])).toEqual({ kind: 'LOST' });
    expect(await rig.epoch.open(0, epoch, [])).toEqual({ kind: 'LOST' });
  });

  it('does not open after another loss of data, nor on another history', async () => {
    const value = await begun(epoch);
    await rig.redis.flushall();
    expect(await rig.epoch.open(0, value, [])).toEqual({ kind: 'LOST' });
    const foreign = `reconciling:${token}:${'d'.repeat(40)}`;
    await rig.redis.set(rig.keys.epoch(0), foreign);
    expect(await rig.epoch.open(0, foreign, [])).toEqual({ kind: 'LOST' });
    expect(await rig.epoch.state(0)).toMatchObject({ kind: 'RECONCILING', sameServer: false });
  });

  it('does not open while a voucher of the list lacks a key or is being rebuilt, and names it', async () => {
    for (const voucherId of ['1', '2', '3', '4']) await rig.register.publish(0, { ...terms, voucherId });
    const value = await begun(epoch);
    await rig.redis.del(rig.keys.stock(0, '2'), rig.keys.sale(0, '3'));
    await rig.rebuild.begin(0, '4', value, token);
    expect(await rig.epoch.open(0, value, ['1', '2', '3', '4', '404'])).toEqual({
      kind: 'INCOMPLETE',
      voucherIds: ['2', '3', '4', '404'],
    });
    expect(await rig.epoch.open(0, value, ['1'])).toEqual({ kind: 'OPENED', value: epoch });
  });

  it('closes by itself when the server restarts, and the connections come back', async () => {
    await rig.publish('17', 5);
    await rig.buy('17', '1', '101');
    await server.down();
    await server.up();
    expect(await rig.connections.whenReady(10_000)).toBe(true);
    await expect
      .poll(() => rig.buy('17', '2', '102'), { timeout: 10_000 })
      .toEqual({ kind: 'UNAVAILABLE', reason: 'EPOCH' });
    expect(await rig.epoch.state(0)).toEqual({ kind: 'CLOSED', value: epoch });
    await rig.openEpoch();
    expect(await rig.buy('17', '1', '103')).toEqual({ kind: 'DUPLICATE', orderId: '101' });
  });

  it('hands requests for a rebuild to those who listen, until they stop', () => {
    const heard: RebuildRequest[] = [];
    rig.epoch.requestRebuild(0, undefined, 'EPOCH');
    const off = rig.epoch.onRebuildRequested((request) => heard.push(request));
    rig.epoch.requestRebuild(0, '17', 'NOT_PUBLISHED');
    off();
    rig.epoch.requestRebuild(0, '18', 'INCONSISTENT');
    expect(heard).toEqual([{ partition: 0, voucherId: '17', reason: 'NOT_PUBLISHED' }]);
  });
});

describe('rebuilding a sale', () => {
  it('ends with stock = units - marks, counted by the script, and the terms of the database', async () => {
    await rig.redis.flushall();
    const value = await begun(undefined);
    expect(await rig.rebuild.begin(0, '17', value, token)).toEqual({ kind: 'BEGUN' });
    const marks = Array.from({ length: 1000 }, (_, at) => ({
      userId: String(at + 1),
      expectedOrderId: undefined,
      orderId: String(at + 5000),
    }));
    expect(await rig.rebuild.writeMarks(0, '17', value, token, marks)).toEqual({
      kind: 'WRITTEN',
      written: 1000,
      kept: [],
    });
    expect(await rig.rebuild.finish(0, { ...terms, units: 1200, unitsVersion: 4 }, value, token)).toEqual({
      kind: 'FINISHED',
      unitsLeft: 200,
      marks: 1000,
      units: 1200,
      unitsVersion: 4,
    });
    expect(await rig.epoch.open(0, value, ['17'])).toMatchObject({ kind: 'OPENED' });
    expect(await rig.buy('17', '1000', '1')).toEqual({ kind: 'DUPLICATE', orderId: '5999' });
    expect(await rig.buy('17', '1001', '2')).toEqual({ kind: 'ACCEPTED', orderId: '2' });
  });

  it('closes one sale while the others go on, keeps its marks, and raises its version', async () => {
    await rig.register.publish(0, terms);
    await rig.register.publish(0, { ...terms, voucherId: '18' });
    await rig.buy('17', '1', '101');
    const before = Number(await rig.redis.hget(rig.keys.sale(0, '17'), 'version'));
    await rig.rebuild.begin(0, '17', epoch, token);
    expect(await rig.buy('17', '2', '102')).toEqual({ kind: 'UNAVAILABLE', reason: 'EPOCH' });
    expect(await rig.buy('18', '2', '103')).toEqual({ kind: 'ACCEPTED', orderId: '103' });
    expect(await rig.rebuild.finish(0, terms, epoch, token)).toMatchObject({
      kind: 'FINISHED',
      unitsLeft: 4,
      marks: 1,
    });
    expect(Number(await rig.redis.hget(rig.keys.sale(0, '17'), 'version'))).toBeGreaterThan(before);
    expect(await rig.buy('17', '1', '104')).toEqual({ kind: 'DUPLICATE', orderId: '101' });
  });

  it("writes a mark only where the reader's sight still holds, and names those it kept", async () => {
    await rig.register.publish(0, terms);
    await rig.buy('17', '1', '101');
    await rig.buy('17', '2', '102');
    await rig.rebuild.begin(0, '17', epoch, token);
    const written = await rig.rebuild.writeMarks(0, '17', epoch, token, [
      { userId: '1', expectedOrderId: undefined, orderId: '201' },
      { userId: '2', expectedOrderId: '102', orderId: '202' },
      { userId: '3', expectedOrderId: undefined, orderId: '203' },
      { userId: '1', expectedOrderId: '999', orderId: '101' },
    ]);
    expect(written).toEqual({ kind: 'WRITTEN', written: 2, kept: ['1'] });
    expect((await rig.snapshot('17')).marks).toEqual({ '1': '101', '2': '202', '3': '203' });
  });

  it('refuses every step under another token, another epoch or after a loss', async () => {
    await rig.register.publish(0, terms);
    const marks = [{ userId: '1', expectedOrderId: undefined, orderId: '201' }];
    const lost = { kind: 'LOST' };
    expect(await rig.rebuild.begin(0, '17', 'e'.repeat(40), token)).toEqual(lost);
    expect(await rig.rebuild.writeMarks(0, '17', epoch, token, marks)).toEqual(lost);
    expect(await rig.rebuild.finish(0, terms, epoch, token)).toEqual(lost);
    await rig.rebuild.begin(0, '17', epoch, token);
    await rig.rebuild.begin(0, '17', epoch, 'another0');
    expect(await rig.rebuild.writeMarks(0, '17', epoch, token, marks)).toEqual(lost);
    expect(await rig.rebuild.finish(0, terms, epoch, token)).toEqual(lost);
    const value = await begun(epoch);
    expect(await rig.rebuild.finish(0, terms, epoch, 'another0')).toEqual(lost);
    await rig.redis.flushall();
    expect(await rig.rebuild.finish(0, terms, value, 'another0')).toEqual(lost);
    expect(await rig.redis.keys('*')).toEqual([]);
  });

  it('keeps the units of a restock that came between the reading and the finish', async () => {
    await rig.register.publish(0, terms);
    await rig.register.restock(0, { voucherId: '17', units: 9, unitsVersion: 3 });
    await rig.rebuild.begin(0, '17', epoch, token);
    expect(await rig.rebuild.finish(0, { ...terms, units: 7, unitsVersion: 2 }, epoch, token)).toMatchObject({
      units: 9,
      unitsVersion: 3,
      unitsLeft: 9,
    });
    await rig.rebuild.begin(0, '17', epoch, token);
    expect(await rig.rebuild.finish(0, { ...terms, units: 7, unitsVersion: 3 }, epoch, token)).toMatchObject({
      units: 7,
      unitsVersion: 3,
      unitsLeft: 7,
    });
  });

  it('heals keys of another type', async () => {
    for (const key of Object.values(rig.keys.saleKeys(0, '17'))) await rig.redis.rpush(key, 'x');
    await rig.rebuild.begin(0, '17', epoch, token);
    expect(await rig.rebuild.finish(0, terms, epoch, token)).toMatchObject({
      kind: 'FINISHED',
      unitsLeft: 5,
      marks: 0,
    });
    expect(await rig.buy('17', '1', '101')).toEqual({ kind: 'ACCEPTED', orderId: '101' });
  });
});

describe('repairs', () => {
  beforeEach(async () => {
    await rig.register.publish(0, terms);
    await rig.buy('17', '1', '101');
  });
  const lost = { kind: 'LOST' };

  it('appends an entry again only while the mark holds the order', async () => {
    await rig.redis.del(rig.keys.stream(0));
    expect(await rig.rebuild.reappend(0, order, epoch)).toMatchObject({ kind: 'APPENDED' });
    expect((await rig.snapshot('17')).entries).toEqual([['userId', '1', 'voucherId', '17', 'id', '101']]);
    await rig.register.release(0, order);
    expect(await rig.rebuild.reappend(0, order, epoch)).toEqual({ kind: 'NOT_HELD' });
    expect(await rig.rebuild.reappend(0, order, 'f'.repeat(40))).toEqual(lost);
  });

  it('marks a buyer whom Redis lost and takes his unit, below 0 if need be, once', async () => {
    await rig.register.restock(0, { voucherId: '17', units: 1, unitsVersion: 2 });
    const second = { voucherId: '17', userId: '2', orderId: '102' };
    expect(await rig.rebuild.mark(0, second, epoch)).toEqual({ kind: 'MARKED', unitsLeft: -1 });
    expect(await rig.rebuild.mark(0, second, epoch)).toEqual({ kind: 'HELD', orderId: '102' });
    expect(await rig.rebuild.mark(0, { ...second, voucherId: '404' }, epoch)).toEqual({ kind: 'NOT_PUBLISHED' });
    expect(await rig.rebuild.mark(0, second, 'f'.repeat(40))).toEqual(lost);
    expect(await rig.buy('17', '3', '103')).toEqual({ kind: 'SOLD_OUT' });
    expect(await rig.redis.exists(rig.keys.marks(0, '404'))).toBe(0);
  });

  it('replaces the id in a mark only where it still is the one that was read', async () => {
    const active = { ...order, orderId: '301' };
    expect(await rig.rebuild.remark(0, active, '999', epoch)).toEqual({ kind: 'CHANGED', orderId: '101' });
    expect(await rig.rebuild.remark(0, active, '101', epoch)).toEqual({ kind: 'REMARKED' });
    expect(await rig.rebuild.remark(0, { ...active, userId: '9' }, '101', epoch)).toEqual({
      kind: 'CHANGED',
      orderId: undefined,
    });
    expect(await rig.rebuild.remark(0, active, '301', 'f'.repeat(40))).toEqual(lost);
    expect((await rig.snapshot('17')).marks).toEqual({ '1': '301' });
  });

  it('corrects the stock by a difference that still stands, once, and through purchases in between', async () => {
    await rig.redis.decrby(rig.keys.stock(0, '17'), 2);
    await rig.redis.hset(rig.keys.marks(0, '17'), '9', '109');
    // units 5, marks 2, stock 2: one is missing.
    expect(await rig.rebuild.correctStock(0, '17', 2, epoch)).toEqual({ kind: 'CHANGED', difference: 1 });
    expect(await rig.rebuild.correctStock(0, '17', 1, epoch)).toEqual({ kind: 'CORRECTED', before: 2, after: 3 });
    expect(await rig.rebuild.correctStock(0, '17', 1, epoch)).toEqual({ kind: 'CHANGED', difference: 0 });
    expect(await rig.rebuild.correctStock(0, '17', 1, 'f'.repeat(40))).toEqual(lost);
    expect(await rig.rebuild.correctStock(0, '404', 1, epoch)).toEqual({ kind: 'NOT_PUBLISHED' });
    await rig.rebuild.begin(0, '17', epoch, token);
    expect(await rig.rebuild.correctStock(0, '17', 1, epoch)).toEqual(lost);
  });
});

describe('readmission', () => {
  it('takes mark and unit if free, appends the entry, and ignores the window', async () => {
    await rig.register.publish(0, { ...terms, endMs: 2000, units: 1 });
    expect(await rig.rebuild.readmit(0, order)).toMatchObject({ kind: 'READMITTED' });
    expect(await rig.snapshot('17')).toMatchObject({ stock: '0', marks: { '1': '101' }, entries: { length: 1 } });
    expect(await rig.rebuild.readmit(0, order)).toMatchObject({ kind: 'READMITTED' });
    expect(await rig.snapshot('17')).toMatchObject({ stock: '0', marks: { '1': '101' }, entries: { length: 2 } });
    expect(await rig.rebuild.readmit(0, { ...order, orderId: '102' })).toEqual({ kind: 'HELD', orderId: '101' });
    expect(await rig.rebuild.readmit(0, { ...order, userId: '2' })).toEqual({ kind: 'NO_UNITS' });
  });

  it('waits while partition or sale cannot be trusted', async () => {
    expect(await rig.rebuild.readmit(0, order)).toEqual({ kind: 'NOT_PUBLISHED' });
    await rig.register.publish(0, terms);
    await rig.redis.incr(rig.keys.stock(0, '17'));
    expect(await rig.rebuild.readmit(0, order)).toEqual({ kind: 'CLOSED' });
    await rig.rebuild.begin(0, '17', epoch, token);
    expect(await rig.rebuild.readmit(0, order)).toEqual({ kind: 'CLOSED' });
    await rig.rebuild.finish(0, terms, epoch, token);
    await begun(epoch);
    expect(await rig.rebuild.readmit(0, order)).toEqual({ kind: 'CLOSED' });
    expect(await rig.snapshot('17')).toMatchObject({ marks: {}, entries: [] });
  });
});
