import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AdmissionOutcome, AdmissionRequest, ReleaseOutcome, RestockOutcome } from './outcomes.js';
import { RegisterRig, startRig } from './test-support/register-rig.js';

const VOUCHERS = ['17', '18'] as const;
const USERS = ['1', '2', '3', '4', '5'] as const;
const FIRST_UNITS = 3;
const MAX_BACKLOG = 9;
/** Windows as distances from now: the clock of the server moves relative to them. */
const WINDOWS = {
  early: [3_600_000, 7_200_000],
  open: [-3_600_000, 3_600_000],
  over: [-7_200_000, -3_600_000],
} as const;

type Step =
  | { readonly kind: 'BUY'; readonly purchases: readonly Purchase[] }
  | { readonly kind: 'RESTOCK'; readonly voucher: number; readonly change: number; readonly repeat: boolean }
  | {
      readonly kind: 'RELEASE';
      readonly voucher: number;
      readonly user: number;
      readonly held: boolean;
      readonly other: boolean;
    }
  | { readonly kind: 'MOVE'; readonly voucher: number; readonly to: keyof typeof WINDOWS };
interface Purchase {
  readonly voucher: number;
  readonly user: number;
  /** True: sent again with the order id of the user's last try. */
  readonly again: boolean;
}

/** What the register promises, in the plainest form. */
class SaleModel {
  units = FIRST_UNITS;
  unitsVersion = 1;
  stock = FIRST_UNITS;
  window: keyof typeof WINDOWS = 'open';
  readonly marks = new Map<string, string>();
  readonly entries: string[] = [];

  buy(request: AdmissionRequest, backlogRoom: number): AdmissionOutcome['kind'] {
    if (this.window === 'early') return 'NOT_STARTED';
    const held = this.marks.get(request.userId);
    if (held !== undefined) return held === request.orderId ? 'ACCEPTED' : 'DUPLICATE';
    if (this.window === 'over') return 'ENDED';
    if (this.stock <= 0) return 'SOLD_OUT';
    if (backlogRoom <= 0) return 'OVERLOADED';
    this.stock -= 1;
    this.marks.set(request.userId, request.orderId);
    this.entries.push(request.orderId);
    return 'ACCEPTED';
  }

  restock(units: number, version: number): RestockOutcome['kind'] {
    if (version <= this.unitsVersion) return units === this.units ? 'ALREADY' : 'CONFLICT';
    const change = units - this.units;
    if (change < 0 && this.stock + change < 0) return 'INSUFFICIENT_UNITS';
    this.stock += change;
    this.units = units;
    this.unitsVersion = version;
    return 'APPLIED';
  }

  release(userId: string, orderId: string, other: string | undefined): ReleaseOutcome {
    if (this.marks.get(userId) !== orderId) return 'NOT_HELD';
    if (other !== undefined) {
      this.marks.set(userId, other);
      return 'REASSIGNED';
    }
    this.marks.delete(userId);
    this.stock += 1;
    return 'RELEASED';
  }
}

const index = fc.nat(1);
const user = fc.nat(USERS.length - 1);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('BUY' as const),
      purchases: fc.array(fc.record({ voucher: index, user, again: fc.boolean() }), { minLength: 1, maxLength: 8 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('RESTOCK' as const),
      voucher: index,
      change: fc.integer({ min: -4, max: 4 }),
      repeat: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('RELEASE' as const),
      voucher: index,
      user,
      held: fc.boolean(),
      other: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('MOVE' as const),
      voucher: index,
      to: fc.constantFrom('early' as const, 'open' as const, 'over' as const),
    }),
  },
);

/** Drives the real register and the model side by side. */
class Comparison {
  private readonly models = VOUCHERS.map(() => new SaleModel());
  private readonly lastTry = new Map<string, string>();
  private nextOrder = 9_007_199_254_740_993n;

  constructor(
    private readonly rig: RegisterRig,
    private readonly batched: boolean,
  ) {}

  async prepare(): Promise<void> {
    await this.rig.redis.flushall();
    await this.rig.openEpoch();
    for (const voucherId of VOUCHERS) await this.rig.publish(voucherId, FIRST_UNITS);
  }

  async take(step: Step): Promise<void> {
    switch (step.kind) {
      case 'BUY':
        return this.buy(step.purchases);
      case 'RESTOCK':
        return this.restock(step);
      case 'RELEASE':
        return this.release(step);
      case 'MOVE':
        return this.move(step);
    }
  }

  async agree(): Promise<void> {
    for (const [at, voucherId] of VOUCHERS.entries()) {
      const model = this.model(at);
      const { stock, marks, sale, entries } = await this.rig.snapshot(voucherId);
      expect(stock).toBe(String(model.stock));
      expect(new Map(Object.entries(marks))).toEqual(model.marks);
      expect(entries.map((flat) => flat[5])).toEqual(model.entries);
      expect(sale).toMatchObject({
        units: String(model.units),
        unitsVersion: String(model.unitsVersion),
        status: 'open',
      });
      expect(Number(stock) + Object.keys(marks).length).toBe(model.units);
    }
  }

  private async buy(purchases: readonly Purchase[]): Promise<void> {
    const requests = purchases.map((purchase) => this.request(purchase));
    const outcomes = this.batched ? await this.rig.register.admit(0, requests, 10_000) : await this.oneByOne(requests);
    // The script takes the vouchers of a batch in the order of their first purchase; so does the backlog.
    const order = this.batched
      ? [...new Set(requests.map(({ voucherId }) => voucherId))].flatMap((id) =>
          requests.flatMap((one, at) => (one.voucherId === id ? [at] : [])),
        )
      : requests.map((_, at) => at);
    for (const at of order) {
      const request = requests[at] as AdmissionRequest;
      const model = this.model(VOUCHERS.indexOf(request.voucherId as (typeof VOUCHERS)[number]));
      const held = model.marks.get(request.userId);
      const kind = model.buy(request, MAX_BACKLOG - this.models.reduce((sum, { entries }) => sum + entries.length, 0));
      expect(outcomes[at]?.kind).toBe(kind);
      if (kind === 'ACCEPTED') expect(outcomes[at]).toEqual({ kind, orderId: request.orderId });
      if (kind === 'DUPLICATE') expect(outcomes[at]).toEqual({ kind, orderId: held });
    }
  }

  private async oneByOne(requests: readonly AdmissionRequest[]): Promise<AdmissionOutcome[]> {
    const outcomes: AdmissionOutcome[] = [];
    for (const request of requests) outcomes.push(...(await this.rig.register.admit(0, [request], 10_000)));
    return outcomes;
  }

  private request({ voucher, user: at, again }: Purchase): AdmissionRequest {
    const [voucherId, userId] = [VOUCHERS[voucher] as string, USERS[at] as string];
    const known = this.lastTry.get(`${voucherId}/${userId}`);
    const orderId = again && known !== undefined ? known : String(this.nextOrder++);
    this.lastTry.set(`${voucherId}/${userId}`, orderId);
    return { voucherId, userId, orderId };
  }

  private async restock({ voucher, change, repeat }: Extract<Step, { kind: 'RESTOCK' }>): Promise<void> {
    const model = this.model(voucher);
    const units = Math.max(0, model.units + change);
    const unitsVersion = model.unitsVersion + (repeat ? 0 : 1);
    const outcome = await this.rig.register.restock(0, { voucherId: VOUCHERS[voucher] as string, units, unitsVersion });
    expect(outcome.kind).toBe(model.restock(units, unitsVersion));
    if ('unitsLeft' in outcome) expect(outcome.unitsLeft).toBe(model.stock);
  }

  private async release({ voucher, user: at, held, other }: Extract<Step, { kind: 'RELEASE' }>): Promise<void> {
    const model = this.model(voucher);
    const userId = USERS[at] as string;
    const orderId = (held ? model.marks.get(userId) : undefined) ?? String(this.nextOrder++);
    const activeOrderId = other ? String(this.nextOrder++) : undefined;
    const order = { voucherId: VOUCHERS[voucher] as string, userId, orderId };
    const outcome = await this.rig.register.release(0, order, activeOrderId);
    expect(outcome).toBe(model.release(userId, orderId, activeOrderId));
  }

  private async move({ voucher, to }: Extract<Step, { kind: 'MOVE' }>): Promise<void> {
    this.model(voucher).window = to;
    const nowMs = Number((await this.rig.redis.time())[0]) * 1000;
    const [begin, end] = WINDOWS[to];
    const key = this.rig.keys.sale(0, VOUCHERS[voucher] as string);
    await this.rig.redis.hset(key, { beginMs: String(nowMs + begin), endMs: String(nowMs + end) });
  }

  private model(at: number): SaleModel {
    return this.models[at] as SaleModel;
  }
}

let rig: RegisterRig;
let stop: () => Promise<void>;
beforeAll(async () => {
  ({ rig, stop } = await startRig({ maxBacklog: MAX_BACKLOG }, ['--appendonly', 'no']));
});
afterAll(() => stop());

it.each([
  ['one by one', false, 60],
  ['in batches', true, 150],
])('agrees with the model after every step of any sequence, %s', async (_how, batched, numRuns) => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
      const comparison = new Comparison(rig, batched);
      await comparison.prepare();
      for (const each of steps) {
        await comparison.take(each);
        await comparison.agree();
      }
    }),
    { numRuns },
  );
});
