import { createServer, connect, type Server, type Socket } from 'node:net';
import type { TestingModule } from '@nestjs/testing';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Database } from '#database';
import { OrderRepository } from '#orders';
import { EpochRegister } from '#sale-register';
import { disagreements, purchases, ReconciliationRoom } from '../../../test/support/reconciliation-room.js';
import { BackOff } from './back-off.js';
import { EpochWatch, ReconciliationJob, ReconciliationService, RebuildService } from './index.js';
import { TimelineWatch } from './timeline-watch.js';

/** A way to PostgreSQL that can be cut. */
class Link {
  private readonly sockets = new Set<Socket>();
  private open = false;

  private constructor(
    private readonly server: Server,
    readonly port: number,
  ) {}

  static async to(target: URL): Promise<Link> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const link = new Link(server, (server.address() as { port: number }).port);
    server.on('connection', (near) => {
      if (!link.open) return void near.destroy();
      const far = connect(Number(target.port), target.hostname);
      for (const socket of [near, far]) {
        link.sockets.add(socket);
        socket.on('error', () => undefined).on('close', () => (near.destroy(), far.destroy()));
      }
      near.pipe(far).pipe(near);
    });
    return link;
  }

  mend(): void {
    this.open = true;
  }

  cut(): void {
    this.open = false;
    for (const socket of this.sockets) socket.destroy();
    this.sockets.clear();
  }

  close(): void {
    this.cut();
    this.server.close();
  }
}

let room: ReconciliationRoom;
let watching: TestingModule;
const V = '100';

beforeEach(async () => {
  room = await ReconciliationRoom.start();
});
afterEach(async () => {
  await room.destroy();
});

const watch = (): EpochWatch => watching.get(EpochWatch);
const condition = (): string | undefined => watch().status()[0]?.condition;
async function opens(): Promise<void> {
  await vi.waitFor(async () => expect((await room.epochs.state(0)).kind).toBe('OPEN'), { timeout: 20_000 });
  await vi.waitFor(() => expect(condition()).toBe('OPEN'), { timeout: 20_000 });
}

describe('the watch', () => {
  it('opens an empty Redis over an empty database by itself, and whatever closes it later', async () => {
    watching = await room.process({ watching: true });
    await opens();
    await room.voucher(V, 10);
    // The request wing meets a voucher that Redis does not know, and asks for it: at its own register, in its own process.
    watching.get(EpochRegister).requestRebuild(0, V, 'NOT_PUBLISHED');
    await vi.waitFor(async () => expect(await room.buy(V, purchases(3))).toEqual(Array(3).fill('ACCEPTED')), 10_000);
    await room.drain();
    await room.redis.flushall();
    await opens();
    expect(await room.buy(V, [{ userId: '1', orderId: '9' }])).toEqual(['DUPLICATE']);
    await room.server.down();
    await vi.waitFor(() => expect(condition()).toBe('UNREACHABLE'), { timeout: 10_000 });
    await room.server.up();
    await opens();
    await vi.waitFor(async () => expect(await room.buy(V, purchases(2, 30))).toEqual(['ACCEPTED', 'ACCEPTED']), 10_000);
    await room.drain();
    expect(disagreements(await room.inBothStores(V))).toEqual([]);
  });

  it('waits while the database is away, says so, and opens when it is there', async () => {
    const home = new URL(room.home.url);
    const link = await Link.to(new URL(room.home.url));
    home.port = String(link.port);
    home.hostname = '127.0.0.1';
    const far = { ...room.settings, database: { ...room.settings.database, url: home.href } };
    watching = await room.process({ watching: true, waits: false, settings: far });
    try {
      await vi.waitFor(() => expect(condition()).toBe('WAITING_FOR_DATABASE'), { timeout: 10_000 });
      expect((await room.epochs.state(0)).kind).toBe('CLOSED');
      link.mend();
      await opens();
      link.cut();
      await vi.waitFor(() => expect(watching.get(Database).isReady()).toBe(false), { timeout: 10_000 });
      await room.redis.del(room.keys.epoch(0));
      await vi.waitFor(() => expect(condition()).toBe('WAITING_FOR_DATABASE'), { timeout: 10_000 });
      link.mend();
      await opens();
    } finally {
      await room.end(watching);
      link.close();
    }
  });

  it('rebuilds one voucher once for any number of wishes, and only where that is needed', async () => {
    await room.onSale({ [V]: 10 });
    watching = await room.process({ watching: true });
    await opens();
    const rebuild = vi.spyOn(watching.get(RebuildService), 'rebuildVoucher');
    await room.redis.incr(room.keys.stock(0, V));
    for (let time = 0; time < 500; time += 1) watching.get(EpochRegister).requestRebuild(0, V, 'INCONSISTENT');
    await vi.waitFor(async () => expect(await room.redis.get(room.keys.stock(0, V))).toBe('10'), 10_000);
    await watch().runOnce();
    expect(rebuild.mock.calls.length).toBeLessThanOrEqual(2);
    const reports = await Promise.all(rebuild.mock.results.map(({ value }) => value as ReturnType<typeof rebuild>));
    expect(reports.filter((report) => report?.outcome === 'OPENED')).toHaveLength(1);
  });

  it('rebuilds an open partition once the record says that it was rebuilt on another Redis since', async () => {
    await room.onSale({ [V]: 10 });
    watching = await room.process({ watching: true });
    await opens();
    const rebuild = vi.spyOn(watching.get(RebuildService), 'rebuildPartition');
    await watch().runOnce();
    expect(rebuild).not.toHaveBeenCalled();
    // The other Redis sold a unit, and its orders were stored. This one was the primary before, and comes back as it was.
    await room.get(OrderRepository).raiseEpochNumber(0, 'b'.repeat(40));
    await vi.waitFor(() => expect(rebuild).toHaveBeenCalledOnce(), { timeout: 10_000 });
    expect(await rebuild.mock.results[0]?.value).toMatchObject({ outcome: 'OPENED' });
    await opens();
    const histories = await room.get(OrderRepository).rebuiltHistories();
    expect(histories.get(0)).toBe(await room.redis.get(room.keys.epoch(0)));
    await watch().runOnce();
    expect(rebuild).toHaveBeenCalledOnce();
  });

  it('tries again after a pause where a rebuild fails, and shows the reason', async () => {
    watching = await room.process({ watching: true });
    await opens();
    const rebuilds = watching.get(RebuildService);
    const failing = vi.spyOn(rebuilds, 'rebuildPartition').mockRejectedValueOnce(new Error('out of order'));
    await room.redis.del(room.keys.epoch(0));
    await vi.waitFor(
      () => expect(watch().status()[0]).toMatchObject({ condition: 'FAILING', reason: 'out of order' }),
      10_000,
    );
    await opens();
    expect(failing.mock.calls.length).toBe(2);
  });

  it('says what an operator must know: a Redis user that may not ask for the history', async () => {
    await room.redis.call('ACL', 'SETUSER', 'default', '-info');
    watching = await room.process({ watching: true, waits: false });
    await vi.waitFor(() => expect(condition()).toBe('NOT_SUPPORTED'), { timeout: 10_000 });
    await room.redis.call('ACL', 'SETUSER', 'default', '+info');
    await opens();
  });

  it('has everything reconciled once the database is on another timeline', async () => {
    await room.onSale({ [V]: 5 });
    watching = await room.process({ watching: true });
    await opens();
    const pass = vi.spyOn(watching.get(ReconciliationService), 'pass');
    vi.spyOn(watching.get(TimelineWatch), 'moved').mockResolvedValueOnce(true);
    await vi.waitFor(() => expect(pass).toHaveBeenCalledWith({ actor: 'timeline-change' }), { timeout: 10_000 });
    await watch().runOnce();
    expect(pass).toHaveBeenCalledOnce();
  });

  it('two of them, and a third process that dies, leave the partition open', async () => {
    await room.onSale({ [V]: 10 });
    await room.buy(V, purchases(4));
    const second = await room.process({ watching: true });
    watching = await room.process({ watching: true });
    await room.redis.flushall();
    await room.epochs.begin(0, 'deadbeef', undefined);
    await opens();
    await room.end(second);
    expect(await room.buy(V, purchases(1, 70))).toEqual(['ACCEPTED']);
  });
});

describe('the periodic reconciliation', () => {
  it('finds and repairs on one instance at a time, and skips while a store is away', async () => {
    await room.onSale({ [V]: 10 });
    watching = await room.process({ watching: true });
    const second = await room.process({ watching: true });
    await room.redis.incrby(room.keys.stock(0, V), 4);
    const runs = await Promise.all([watching, second].map((module) => module.get(ReconciliationJob).runOnce()));
    const done = runs.filter(({ kind }) => kind === 'DONE');
    expect(done.length).toBeGreaterThanOrEqual(1);
    expect(done.flatMap((run) => (run.kind === 'DONE' ? run.findings.map(({ kind }) => kind) : []))).toContain(
      'COUNTER_DRIFT',
    );
    expect(await room.redis.get(room.keys.stock(0, V))).toBe('10');
    expect(await watching.get(ReconciliationJob).runOnce()).toEqual({ kind: 'DONE', findings: [], repaired: 0 });
    await room.server.down();
    expect((await watching.get(ReconciliationJob).runOnce()).kind).toBe('SKIPPED');
  });
});

describe('the timeline of the database', () => {
  it('is read, and its change is noticed once', async () => {
    const { RecordReader } = await import('./record.reader.js');
    const record = room.get(RecordReader);
    expect(await record.timeline()).toMatch(/^[0-9A-F]{8}$/);
    const answers = [undefined, '00000001', '00000001', undefined, '00000002', '00000002'];
    const timeline = new TimelineWatch({ timeline: () => Promise.resolve(answers.shift()) } as never);
    const moved = [];
    for (let time = 0; time < 6; time += 1) moved.push(await timeline.moved());
    expect(moved).toEqual([false, false, false, false, true, false]);
  });
});

describe('the pause after failures', () => {
  it('doubles from one second to half a minute; repeated trouble is said twice a minute', () => {
    const backOff = new BackOff();
    const pauses: number[] = [];
    let nowMs = 1_000_000;
    let said = 0;
    for (let time = 0; time < 8; time += 1) {
      if (backOff.failed('same', nowMs)) said += 1;
      const failedAtMs = nowMs;
      while (!backOff.isDue(nowMs)) nowMs += 100;
      pauses.push(nowMs - failedAtMs);
    }
    expect(pauses).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
    expect(said).toBeLessThanOrEqual(5);
    expect(backOff.failed('other', nowMs)).toBe(true);
    // A store that was away may be back any moment.
    backOff.failed('away', nowMs, true);
    expect(backOff.isDue(nowMs + 1_999)).toBe(false);
    expect(backOff.isDue(nowMs + 2_000)).toBe(true);
    backOff.reset();
    expect(backOff.isDue(0)).toBe(true);
  });
});
