import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OrderIdFormat, ORDER_ID_EPOCH_SECONDS, SEQUENCE_LIMIT, unixSecondOfOrderId } from './order-id.js';
import { LEASE_SIZE, RedisIdWorker } from './redis-id-worker.js';

const DAY_MS = 86_400_000;
const NOON_MS = Date.UTC(2026, 10, 30, 12);

/** The counters that several workers lease from, as Redis keeps them. */
class Counters {
  readonly values = new Map<string, number>();
  readonly days: string[] = [];
  isAway = false;
  private random = 4_000_000_000;

  readonly lease = (day: string, size: number): Promise<number> => {
    if (this.isAway) return Promise.reject(new Error('away'));
    this.days.push(day);
    const first = this.values.get(day) ?? this.random;
    this.values.set(day, first + size);
    return Promise.resolve(first);
  };

  /** Redis lost its data: a missing counter starts at another random number. */
  lose(): void {
    this.values.clear();
    this.random = (this.random + 1_000_000_007) % SEQUENCE_LIMIT;
  }
}

async function idOf(worker: RedisIdWorker): Promise<string | undefined> {
  const id = worker.nextId();
  if (id !== undefined) return id;
  await worker.refill();
  return worker.nextId();
}

describe('OrderIdFormat', () => {
  it('is (seconds since 2022) * 2^32 + sequence, in decimal, for every second and sequence', () => {
    const format = new OrderIdFormat();
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 2 ** 31 - 1 }),
        fc.array(fc.integer({ min: 0, max: SEQUENCE_LIMIT - 1 }), { minLength: 1, maxLength: 5 }),
        (second, sequences) => {
          for (const sequence of [...sequences, 0, SEQUENCE_LIMIT - 1]) {
            const id = format.format(ORDER_ID_EPOCH_SECONDS + second, sequence);
            expect(id).toBe(((BigInt(second) << 32n) | BigInt(sequence)).toString());
            expect(unixSecondOfOrderId(id ?? '0')).toBe(ORDER_ID_EPOCH_SECONDS + second);
          }
        },
      ),
    );
  });

  it('makes no id where the clock is outside 2022 to 2090', () => {
    const format = new OrderIdFormat();
    expect(format.format(ORDER_ID_EPOCH_SECONDS - 1, 5)).toBeUndefined();
    expect(format.format(ORDER_ID_EPOCH_SECONDS, 0)).toBeUndefined();
    expect(format.format(ORDER_ID_EPOCH_SECONDS + 2 ** 31, 5)).toBeUndefined();
    expect(format.format(ORDER_ID_EPOCH_SECONDS + 2 ** 31 - 1, SEQUENCE_LIMIT - 1)).toBe('9223372036854775807');
  });
});

describe('RedisIdWorker', () => {
  it('makes no id twice, over instances, restarts, clock steps, outages and lost counters', async () => {
    const step = fc.oneof(
      {
        weight: 6,
        arbitrary: fc.record({
          do: fc.constant('ids' as const),
          worker: fc.nat(2),
          count: fc.integer({ min: 1, max: 400 }),
        }),
      },
      {
        weight: 2,
        arbitrary: fc.record({
          do: fc.constant('clock' as const),
          worker: fc.nat(2),
          byMs: fc.integer({ min: -2 * DAY_MS, max: 2 * DAY_MS }),
        }),
      },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const), worker: fc.nat(2) }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('away' as const), isAway: fc.boolean() }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('lose' as const) }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const counters = new Counters();
        const clocks = [NOON_MS, NOON_MS, NOON_MS + DAY_MS / 2 - 500];
        const make = (at: number): RedisIdWorker => new RedisIdWorker(counters.lease, () => clocks[at] ?? 0);
        const workers = clocks.map((_, at) => make(at));
        const made = new Set<string>();
        let count = 0;
        for (const action of steps) {
          if (action.do === 'clock') clocks[action.worker] = (clocks[action.worker] ?? 0) + action.byMs;
          else if (action.do === 'restart') workers[action.worker] = make(action.worker);
          else if (action.do === 'away') counters.isAway = action.isAway;
          else if (action.do === 'lose') {
            counters.lose();
            for (const worker of workers) worker.drop();
          } else {
            for (let index = 0; index < action.count; index += 1) {
              const id = await idOf(workers[action.worker]!);
              if (id === undefined) continue;
              made.add(id);
              count += 1;
            }
          }
        }
        expect(made.size).toBe(count);
      }),
      { numRuns: 60 },
    );
  });

  it('leases ahead of need: one call serves many ids, and the next block is there before the first is used up', async () => {
    const counters = new Counters();
    const worker = new RedisIdWorker(counters.lease, () => NOON_MS);
    await worker.refill();
    const ids = new Set<string>();
    for (let index = 0; index < LEASE_SIZE * 1.5; index += 1) {
      const id = worker.nextId();
      if (id === undefined) throw new Error(`no id at ${index}`);
      ids.add(id);
      if (index === LEASE_SIZE * 0.75) await Promise.resolve();
    }
    expect(ids.size).toBe(LEASE_SIZE * 1.5);
    expect(counters.days.length).toBeLessThanOrEqual(3);
  });

  it('takes the sequences of a day from the counter of that UTC day only, and has the next one ready before midnight', async () => {
    const counters = new Counters();
    let nowMs = Date.UTC(2026, 11, 31, 23, 59, 30);
    const worker = new RedisIdWorker(counters.lease, () => nowMs);
    expect(await idOf(worker)).toBeDefined();
    await expect.poll(() => counters.days).toEqual(['2026:12:31', '2027:01:01']);
    nowMs = Date.UTC(2027, 0, 1);
    counters.isAway = true;
    counters.values.set('2026:12:31', 17);
    const id = worker.nextId();
    expect(BigInt(id ?? 0) & 0xffffffffn).toBe(4_000_000_000n);
    expect(unixSecondOfOrderId(id ?? '1')).toBe(nowMs / 1_000);
  });

  it('goes on with its lease while Redis is away, then says that it has none', async () => {
    const counters = new Counters();
    const worker = new RedisIdWorker(counters.lease, () => NOON_MS);
    await worker.refill();
    counters.isAway = true;
    for (let index = 0; index < LEASE_SIZE; index += 1) expect(worker.nextId()).toBeDefined();
    expect(await idOf(worker)).toBeUndefined();
    counters.isAway = false;
    expect(await idOf(worker)).toBeDefined();
  });

  it('wraps at 2^32', async () => {
    const worker = new RedisIdWorker(
      () => Promise.resolve(SEQUENCE_LIMIT - 1),
      () => NOON_MS,
    );
    const first = BigInt((await idOf(worker)) ?? 0);
    const second = BigInt((await idOf(worker)) ?? 0);
    expect(first & 0xffffffffn).toBe(0xffffffffn);
    expect(second & 0xffffffffn).toBe(0n);
    expect(first >> 32n).toBe(second >> 32n);
  });

  it('takes no block that was asked for before the leases were dropped', async () => {
    const grants: ((first: number) => void)[] = [];
    const worker = new RedisIdWorker(
      () => new Promise((grant) => grants.push(grant)),
      () => NOON_MS,
    );
    const refill = worker.refill();
    worker.drop();
    grants[0]?.(5);
    await refill;
    expect(worker.nextId()).toBeUndefined();
  });

  it('lets purchases that wait at the same time share one lease', async () => {
    const counters = new Counters();
    const worker = new RedisIdWorker(counters.lease, () => NOON_MS);
    await Promise.all(Array.from({ length: 50 }, () => worker.refill()));
    expect(counters.days).toHaveLength(1);
  });
});
