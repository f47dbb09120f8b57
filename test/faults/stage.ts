import { signToken } from '../../scripts/services/signed-token.mjs';
import type { Expectations } from './checker.js';
import { Crowd, isOpen, purchase } from './crowd.js';
import { type Call, History } from './history.js';
import { HttpConnection } from './http-client.js';
import { MetricsCheck } from './metrics-check.js';
import type { Random } from './random.js';
import { Settlement } from './settlement.js';
import { StoreReader } from './store-reader.js';
import { pause, until } from '../support/waiting.js';
import { FAULT_SECRET, type LinkedNode, type World } from './world.js';

const CALL_LIMIT_MS = 15_000;
const PROBE_UNITS = 1_000_000;
const HOUR_MS = 3_600_000;

export interface Sale {
  readonly voucherId: string;
  readonly units: number;
  readonly partition: number;
  expected: Expectations;
}

export interface RushOptions {
  readonly users?: number;
  readonly tries?: number;
  readonly inFlight?: number;
  readonly tryPauseMs?: number;
  /** The mean time between two users on one connection, for rushes that are to last. */
  readonly thinkMs?: number;
  readonly dropShare?: number;
  readonly sale?: Sale;
  /** These users stand at a random place of the queue, beside the unnamed ones. */
  readonly fresh?: readonly string[];
}

/** A crowd at work, and how to wait for moments of it. */
export interface Rush {
  readonly crowd: Crowd;
  /** Resolves when every user has had his tries. */
  readonly done: Promise<void>;
}

let nextUser = 1_000_000;

/** Where one scenario happens: its sales, its clients, what it saw broken. */
export class Stage {
  readonly history = new History();
  readonly reader: StoreReader;
  readonly sales: Sale[] = [];
  readonly broken: string[] = [];
  /** From the end of the fault to the first accepted purchase on every API process; filled by `recovered`. */
  recoveryMs: number | undefined;
  /** Words for the table: what the scenario measured beside. */
  readonly notes: string[] = [];
  private sampler: NodeJS.Timeout | undefined;
  private probe: Sale | undefined;
  private metrics: MetricsCheck | undefined;

  constructor(
    readonly world: World,
    readonly random: Random,
    /** How long is waited for what should come true. */
    readonly patienceMs = 90_000,
  ) {
    this.reader = new StoreReader(() => world.redis, world.postgres);
  }

  /** Records a broken promise where the condition does not hold. */
  expect(holds: boolean, what: string): void {
    if (!holds) this.broken.push(what);
  }

  /** Fresh user ids, never used before in this process. */
  users(count: number): string[] {
    return Array.from({ length: count }, () => String(nextUser++));
  }

  /** A JSON call to the nth API process, as an administrator or a user. */
  async call(
    method: string,
    path: string,
    options: { body?: unknown; token?: string; api?: number; headers?: Record<string, string> } = {},
  ): Promise<{ status: number; body: Record<string, unknown> }> {
    const {
      body,
      token = signToken({ secret: FAULT_SECRET, user: '1', role: 'admin' }),
      api = 0,
      headers = {},
    } = options;
    const answer = await fetch(`${(this.world.apis[api] as LinkedNode).node.url}${path}`, {
      method,
      headers: {
        ...headers,
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(CALL_LIMIT_MS),
    });
    const text = await answer.text();
    return { status: answer.status, body: (text === '' ? {} : JSON.parse(text)) as Record<string, unknown> };
  }

  /** Puts a voucher on sale, its window open now. */
  async openSale(units: number, soldOut = true): Promise<Sale> {
    const body = {
      shopId: '1',
      title: `Fault sale of ${units}`,
      payValue: 100,
      actualValue: 200,
      stock: units,
      beginTime: new Date(Date.now() - HOUR_MS).toISOString(),
      endTime: new Date(Date.now() + 24 * HOUR_MS).toISOString(),
    };
    const created = await until(
      'a voucher is put on sale',
      async () => {
        const answer = await this.call('POST', '/v1/vouchers', { body });
        if (answer.status !== 201) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`);
        return answer.body;
      },
      30_000,
      200,
    );
    const voucherId = String(created['voucherId']);
    const partition = await until(
      'the voucher is in Redis',
      async () => {
        const state = await this.reader.sale(voucherId);
        return state.redisStock === null ? undefined : [state.partition];
      },
      30_000,
    );
    const sale: Sale = { voucherId, units, partition: partition[0] as number, expected: { soldOut } };
    this.sales.push(sale);
    return sale;
  }

  /** The partition of the sale under test. */
  get partition(): number {
    return this.sale.partition;
  }

  get sale(): Sale {
    const [first] = this.sales;
    if (first === undefined) throw new Error('no sale is open');
    return first;
  }

  /** Begins the load; it goes on while the scenario does its harm. */
  rush(options: RushOptions = {}): Rush {
    const { users = 2000, tries = 3, inFlight = this.random.between(64, 256), sale = this.sale } = options;
    const { tryPauseMs, dropShare, thinkMs, fresh = [] } = options;
    const queue = this.users(users - fresh.length);
    queue.splice(this.random.between(0, Math.floor(sale.units / 2)), 0, ...fresh);
    const crowd = new Crowd(
      {
        voucherId: sale.voucherId,
        ports: this.world.apis.map(({ node }) => node.port),
        users: queue,
        inFlight,
        tries,
        ...(tryPauseMs === undefined ? {} : { tryPauseMs }),
        ...(dropShare === undefined ? {} : { dropShare }),
        ...(thinkMs === undefined ? {} : { thinkMs }),
      },
      this.history,
      this.random.derive('crowd'),
    );
    const done = crowd.run();
    done.catch(() => undefined);
    return { crowd, done };
  }

  /** Resolves when so many further purchases were accepted, or the sale is sold out before. */
  accepted(count: number): Promise<void> {
    const { voucherId } = this.sale;
    const accepted = (call: Call) => call.knowledge === 'ACCEPTED' && call.voucherId === voucherId;
    const soldOut = (call: Call) => call.code === 'SOLD_OUT' && call.voucherId === voucherId;
    const moment = this.history.when(count, accepted, this.patienceMs, 'accepted purchases');
    const end = this.history.when(1, soldOut, this.patienceMs, 'a sold out sale');
    end.catch(() => undefined);
    return Promise.race([moment, end]);
  }

  /** Resolves when a fresh user gets an answer about the sale under test that is none of the 503s. */
  async decides(limitMs: number): Promise<void> {
    const connection = new HttpConnection((this.world.apis[0] as LinkedNode).node.port, CALL_LIMIT_MS);
    const decided = async () => {
      const [userId] = this.users(1);
      return !isOpen(await purchase(connection, this.history, this.sale.voucherId, userId as string));
    };
    try {
      await until('the sale under test is open again', decided, limitMs, 50);
    } finally {
      connection.close();
    }
  }

  /** These buyers ask again, until each has a final answer: whoever has an order must hear of that very one. */
  clickAgain(users: readonly string[]): Promise<void> {
    return new Settlement(this).askUntilFinal(this.sale, users);
  }

  /** Resolves when the first orders of the sale under test are stored. */
  async begunToStore(): Promise<void> {
    const { voucherId } = this.sale;
    await until('the drain begins', async () => (await this.reader.sale(voucherId)).active.length > 0, 30_000);
  }

  /** Resolves when so many further calls were answered, or not, in the way that fits. */
  heard(count: number, fits: (call: Call) => boolean, what: string): Promise<void> {
    return this.history.when(count, fits, this.patienceMs, what);
  }

  /**
   * To be called where the fault ends: measures the time until every API process accepts a purchase again. A voucher of its own is bought, so that
   * the sale under test is not touched.
   */
  async recovered(limitMs: number): Promise<void> {
    const startMs = performance.now();
    const probe = this.probe;
    if (probe === undefined) throw new Error('the stage was not set');
    await Promise.all(
      this.world.apis.map(async ({ node }) => {
        const connection = new HttpConnection(node.port, CALL_LIMIT_MS);
        try {
          await until(
            `${node.name} accepts again`,
            async () => {
              const [userId] = this.users(1);
              const call = await purchase(connection, this.history, probe.voucherId, userId as string);
              if (call.knowledge !== 'ACCEPTED') throw new Error(call.code);
              return true;
            },
            this.patienceMs,
            25,
          );
        } finally {
          connection.close();
        }
      }),
    );
    this.recoveryMs = Math.round(performance.now() - startMs);
    this.expect(this.recoveryMs <= limitMs, `I8 recovery took ${this.recoveryMs} ms, the limit is ${limitMs} ms`);
  }

  /** Purchases accepted per second, measured up to `most` times until one measurement reaches `enough`; the best is answered. */
  async rate(most: number, enough = Number.POSITIVE_INFINITY): Promise<number> {
    const { probe } = this;
    if (probe === undefined) throw new Error('the stage was not set');
    let best = 0;
    for (let tries = 0; tries < most && best < enough; tries += 1) {
      const startMs = performance.now();
      await this.rush({ users: 1500, inFlight: 64, sale: probe }).done;
      best = Math.max(best, Math.round((1500 * 1000) / (performance.now() - startMs)));
    }
    return best;
  }

  /** Opens the sales and begins to watch that no row is above the units. */
  async open(units: number): Promise<void> {
    await this.openSale(units);
    this.probe = await this.openSale(PROBE_UNITS, false);
    this.metrics = await MetricsCheck.begin(this.world.apis);
    this.sampler = setInterval(() => {
      this.reader.oversold().then(
        (found) => {
          for (const { voucherId, active, units: offered } of found)
            this.broken.push(`I1 oversold at a sample: voucher ${voucherId} has ${active} rows of ${offered} units`);
        },
        () => undefined,
      );
    }, 250);
  }

  /** I10: where the counters of the API processes differ from what clients heard. */
  async metricDifferences(): Promise<string[]> {
    return (await this.metrics?.differences(this.history)) ?? [];
  }

  close(): void {
    clearInterval(this.sampler);
  }

  /** Resolves when nothing is on its way any more; see Settlement. */
  drained(): Promise<void> {
    return new Settlement(this).drained();
  }

  /** The store lost its data just now: what was accepted before and not yet stored may be lost. Nothing that is sent from now on may. */
  mayLoseSentUntilNow(): void {
    const lossAtMs = performance.now();
    for (const sale of this.sales) sale.expected = { ...sale.expected, lossAtMs };
  }

  /** A time in which a fault lasts. */
  lasts(ms: number): Promise<void> {
    return pause(ms);
  }
}
