import { signToken } from '../../scripts/services/signed-token.mjs';
import { checkSale, countSale, type Expectations, type SaleCounts } from './checker.js';
import { Crowd, isOpen, purchase, tokenOf } from './crowd.js';
import { type Call, History } from './history.js';
import { HttpConnection } from './http-client.js';
import type { Random } from './random.js';
import { StoreReader } from './store-reader.js';
import { pause, until } from './waiting.js';
import { FAULT_SECRET, type LinkedNode, type World } from './world.js';

const CALL_LIMIT_MS = 15_000;
const SETTLE_LIMIT_MS = 90_000;
const DRAIN_LIMIT_MS = 90_000;
const TRIGGER_LIMIT_MS = 60_000;
const PROBE_UNITS = 1_000_000;
const HOUR_MS = 3_600_000;
/** Entries that may stay in the stream after all are finished: the trim removes what is below its bound. */
const LEFT_ENTRIES = 10;
const HANDLES_LIMIT = 180;
const RESIDENT_LIMIT_MB = 700;

export interface Sale {
  readonly voucherId: string;
  readonly units: number;
  expected: Expectations;
}

export interface RushOptions {
  readonly users?: number;
  readonly tries?: number;
  readonly inFlight?: number;
  readonly tryPauseMs?: number;
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

  constructor(
    readonly world: World,
    readonly random: Random,
    /** The share of a long outage's full length that this run takes. */
    private readonly outageShare = 1,
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
    options: { body?: unknown; token?: string; api?: number } = {},
  ): Promise<{ status: number; body: Record<string, unknown> }> {
    const { body, token = signToken({ secret: FAULT_SECRET, user: '1', role: 'admin' }), api = 0 } = options;
    const answer = await fetch(`${(this.world.apis[api] as LinkedNode).node.url}${path}`, {
      method,
      headers: {
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
    const sale: Sale = { voucherId: String(created['voucherId']), units, expected: { soldOut } };
    await until(
      'the voucher is in Redis',
      async () => (await this.reader.sale(sale.voucherId)).redisStock !== null,
      30_000,
    );
    this.sales.push(sale);
    return sale;
  }

  get sale(): Sale {
    const [first] = this.sales;
    if (first === undefined) throw new Error('no sale is open');
    return first;
  }

  /** Begins the load; it goes on while the scenario does its harm. */
  rush(options: RushOptions = {}): Rush {
    const { users = 2000, tries = 3, inFlight = this.random.between(64, 256), sale = this.sale } = options;
    const { tryPauseMs, dropShare, fresh = [] } = options;
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
      },
      this.history,
      this.random.derive('crowd'),
    );
    const done = crowd.run();
    done.catch(() => undefined);
    return { crowd, done };
  }

  /** Resolves when so many further purchases were accepted. */
  accepted(count: number): Promise<void> {
    const { voucherId } = this.sale;
    const fits = (call: Call) => call.knowledge === 'ACCEPTED' && call.voucherId === voucherId;
    return this.history.when(count, fits, TRIGGER_LIMIT_MS, 'accepted purchases');
  }

  /** Resolves when so many further calls were answered, or not, in the way that fits. */
  heard(count: number, fits: (call: Call) => boolean, what: string): Promise<void> {
    return this.history.when(count, fits, TRIGGER_LIMIT_MS, what);
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
            SETTLE_LIMIT_MS,
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

  /** Opens the sales and begins to watch that no row is above the units. */
  async open(units: number): Promise<void> {
    await this.openSale(units);
    this.probe = await this.openSale(PROBE_UNITS, false);
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

  close(): void {
    clearInterval(this.sampler);
  }

  /** Asks for everybody who is in doubt or was refused for now, until each has a final answer (I7), then lets fresh users buy what is left (I5). */
  async settle(): Promise<void> {
    for (const sale of this.sales) {
      const last = new Map(this.history.of(sale.voucherId).map((call) => [call.userId, call]));
      const users = [...last].filter(([, call]) => isOpen(call)).map(([user]) => user);
      await this.askUntilFinal(sale, users);
    }
    await this.drained();
    for (const sale of this.sales.filter(({ expected }) => expected.soldOut)) await this.buyTheRest(sale);
  }

  private async buyTheRest(sale: Sale): Promise<void> {
    for (let round = 0; round < 5; round += 1) {
      const state = await this.reader.sale(sale.voucherId);
      if (state.active.length >= state.units) return;
      await this.askUntilFinal(sale, this.users(state.units - state.active.length + 20));
      await this.drained();
    }
  }

  private async askUntilFinal(sale: Sale, users: readonly string[]): Promise<void> {
    const crowd = new Crowd(
      {
        voucherId: sale.voucherId,
        ports: this.world.apis.map(({ node }) => node.port),
        users,
        inFlight: 64,
        tries: Math.ceil(SETTLE_LIMIT_MS / 100),
        tryPauseMs: 100,
      },
      this.history,
      this.random.derive('settle'),
    );
    await crowd.run();
  }

  /** Resolves when the streams hold no unfinished entry and every mark is a row or a dead letter (I2, I9); what does not come true is recorded. */
  async drained(): Promise<void> {
    const startMs = performance.now();
    let state = '';
    try {
      await until('all orders are stored', async () => (state = await this.unfinished()) === '', DRAIN_LIMIT_MS, 50);
    } catch {
      this.broken.push(`I2/I9 not drained within ${Math.round(performance.now() - startMs)} ms: ${state}`);
    }
  }

  private async unfinished(): Promise<string> {
    const partitions = new Set<number>();
    for (const { voucherId } of this.sales) {
      const sale = await this.reader.sale(voucherId);
      partitions.add(sale.partition);
      const ends = sale.active.length + sale.deadLetters.length;
      if (sale.marks.size !== ends)
        return `voucher ${voucherId}: ${sale.marks.size} marks, ${sale.active.length} rows, ${sale.deadLetters.length} dead letters`;
    }
    for (const partition of partitions) {
      const { pending, undelivered, length } = await this.reader.stream(partition);
      if (pending + undelivered > 0 || length > LEFT_ENTRIES)
        return `stream ${partition}: ${pending} pending, ${undelivered} undelivered, length ${length}`;
    }
    return '';
  }

  /** Holds every invariant against what both stores say now. Answers the counts of the sale under test. */
  async check(): Promise<SaleCounts> {
    for (const sale of this.sales) {
      const state = await this.reader.sale(sale.voucherId);
      for (const fault of checkSale(state, this.history.of(sale.voucherId), sale.expected))
        this.broken.push(`voucher ${sale.voucherId}: ${fault}`);
    }
    await this.checkTold();
    this.checkFootprints();
    const calls = this.history.of(this.sale.voucherId);
    return countSale(await this.reader.sale(this.sale.voucherId), calls);
  }

  /** I2: what the buyer sees, from either process, is what the record says. */
  private async checkTold(): Promise<void> {
    const { voucherId } = this.sale;
    const state = await this.reader.sale(voucherId);
    const ended = state.inactive.slice(0, 5);
    const stored = state.active.length === 0 ? [] : [this.random.pick(state.active), this.random.pick(state.active)];
    for (const row of [...ended, ...stored]) {
      const answer = await this.call('GET', `/v1/vouchers/${voucherId}/orders/${row.id}`, {
        token: tokenOf(row.userId),
        api: this.random.between(0, this.world.apis.length - 1),
      });
      const wanted = { 1: 'UNPAID', 4: 'CANCELLED', 7: 'REJECTED' }[row.status] ?? 'another';
      if (answer.status !== 200 || answer.body['status'] !== wanted)
        this.broken.push(
          `I2 order ${row.id} is ${wanted}, its buyer sees ${answer.status} ${JSON.stringify(answer.body)}`,
        );
    }
  }

  /** I9: open handles and memory stay within their limits. */
  private checkFootprints(): void {
    for (const { node } of this.world.nodes) {
      const seen = node.footprint();
      if (seen === undefined) continue;
      this.expect(seen.residentMb <= RESIDENT_LIMIT_MB, `I9 ${node.name} holds ${seen.residentMb} MB`);
      this.expect(seen.handles <= HANDLES_LIMIT, `I9 ${node.name} holds ${seen.handles} handles`);
    }
  }

  /** The store lost its data just now: what was accepted before and not yet stored may be lost. Nothing that is sent from now on may. */
  mayLoseSentUntilNow(): void {
    const lossAtMs = performance.now();
    for (const sale of this.sales) sale.expected = { ...sale.expected, lossAtMs };
  }

  /** How long an outage lasts that the list of faults gives in full. */
  outageMs(fullMs: number): number {
    return Math.round(fullMs * this.outageShare);
  }

  /** A time in which a fault lasts. */
  lasts(ms: number): Promise<void> {
    return pause(ms);
  }
}
