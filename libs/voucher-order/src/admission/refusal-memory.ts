import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { guardRedis, type RedisConnection, RedisConnections, RedisUnavailableError } from '#redis';
import { type AdmissionOutcome, type CheckedSale, type SaleCheck, SaleChecks, SaleRegister } from '#sale-register';
import { reportRememberedRefusals } from '../metrics.js';
import { BuyerFilter } from './buyer-filter.js';

/** What may be answered from memory. */
export type RememberedRefusal = Extract<AdmissionOutcome, { kind: 'NOT_STARTED' | 'ENDED' | 'SOLD_OUT' }>;

/** A refusal is answered from memory so long after the check that proved it was sent, and not longer. */
export const CHECK_LIFE_MS = 1_000;
/** Pause between two checks. */
const CHECK_PAUSE_MS = 400;
/** So close to begin and end of a sale Redis is asked: its clock decides, and ours is only derived from it. */
const WINDOW_MARGIN_MS = 100;
/** A sale that nobody has asked for so long is forgotten. */
const IDLE_LIFE_MS = 10_000;
/** Sales in memory at most, and in one check. */
const MAX_SALES = 1_000;
const CHECKED_AT_ONCE = 100;
/** All filters together; a sale whose buyers do not fit is always asked for. */
const MAX_FILTER_BYTES = 64 * 1024 * 1024;

const SOLD_OUT: RememberedRefusal = { kind: 'SOLD_OUT' };

/** What a check proved, and when by this process' monotonic clock it was sent and answered. */
interface Proof {
  readonly sentMs: number;
  readonly answeredMs: number;
  readonly serverMs: number;
  readonly history: string;
  readonly sale: CheckedSale;
}

interface RememberedSale {
  readonly partition: number;
  readonly voucherId: string;
  askedMs: number;
  /** Changes of it are heard. Before that no look counts: what changes behind the look would go unheard. */
  listening: boolean;
  /** Undefined: nothing may be answered. */
  proof: Proof | undefined;
  /** The buyers of exactly the state that the proof names; undefined while they are not known. */
  buyers: BuyerFilter | undefined;
  loading: boolean;
}

/**
 * Answers refusals without asking Redis, as Redis said at the last check: not started; and, to whom certainly has no order, ended or sold out.
 *
 * What is remembered rests on a check not older than a second, that read epoch, version and time in one script, and on buyers read between two checks
 * of one and the same state. While a sale is sold out or over, its marks change only together with its version. A change is also told at once over
 * Pub/Sub: without a standing subscription, and with a connection that is down, nothing is answered from memory. What changes without our scripts (a
 * FLUSHALL by hand) is heard by the next check: within the second.
 */
@Injectable()
export class RefusalMemory implements OnModuleDestroy {
  private readonly logger = new Logger(RefusalMemory.name);
  private readonly sales = new Map<string, RememberedSale>();
  private subscriber: RedisConnection | undefined;
  private timer: NodeJS.Timeout | undefined;
  private checking = false;
  private closed = false;
  private filterBytes = 0;

  constructor(
    private readonly connections: RedisConnections,
    private readonly checks: SaleChecks,
    private readonly register: SaleRegister,
  ) {
    reportRememberedRefusals(() => this.sales.size);
  }

  onModuleDestroy(): void {
    this.closed = true;
    clearInterval(this.timer);
    this.forgetAll();
    if (this.subscriber !== undefined) this.connections.close(this.subscriber);
  }

  /** The refusal that Redis would answer now, or undefined where Redis must be asked. */
  answer(voucherId: string, userId: string): RememberedRefusal | undefined {
    const remembered = this.sales.get(voucherId);
    if (remembered === undefined) return undefined;
    const nowMs = performance.now();
    remembered.askedMs = nowMs;
    const { proof, buyers } = remembered;
    if (proof === undefined || nowMs - proof.sentMs > CHECK_LIFE_MS) return undefined;
    if (!this.connections.isReady() || !this.connections.isReady(this.connections.admission)) return undefined;
    const { beginMs, endMs, unitsLeft } = proof.sale;
    // Redis' clock was read between sending and answer: it shows between these two now.
    const earliestMs = proof.serverMs + nowMs - proof.answeredMs;
    const latestMs = proof.serverMs + nowMs - proof.sentMs;
    if (latestMs + WINDOW_MARGIN_MS < beginMs) return { kind: 'NOT_STARTED', beginMs };
    if (buyers === undefined || earliestMs - WINDOW_MARGIN_MS < beginMs || buyers.mayHold(userId)) return undefined;
    if (earliestMs - WINDOW_MARGIN_MS >= endMs) return { kind: 'ENDED', endMs };
    if (latestMs + WINDOW_MARGIN_MS >= endMs) return undefined;
    return unitsLeft <= 0 ? SOLD_OUT : undefined;
  }

  /** Redis has refused a purchase of this sale: from now on it is looked at, so that the next refusals need not ask. */
  note(partition: number, voucherId: string): void {
    if (this.closed || this.sales.has(voucherId) || this.sales.size >= MAX_SALES) return;
    const remembered: RememberedSale = {
      partition,
      voucherId,
      askedMs: performance.now(),
      listening: false,
      proof: undefined,
      buyers: undefined,
      loading: false,
    };
    this.sales.set(voucherId, remembered);
    this.timer ??= setInterval(() => void this.checkAll(), CHECK_PAUSE_MS).unref();
    void this.begin(remembered);
  }

  /** Looks at every remembered sale once. Never rejects; what cannot be checked is not answered from memory. */
  async checkAll(): Promise<void> {
    if (this.checking) return;
    this.checking = true;
    try {
      this.dropIdle();
      const partitions = new Map<number, RememberedSale[]>();
      for (const each of this.sales.values()) {
        if (!each.listening) continue;
        partitions.set(each.partition, [...(partitions.get(each.partition) ?? []), each]);
      }
      for (const [partition, sales] of partitions) {
        for (let at = 0; at < sales.length; at += CHECKED_AT_ONCE) {
          await this.check(partition, sales.slice(at, at + CHECKED_AT_ONCE));
        }
      }
    } finally {
      this.checking = false;
    }
  }

  private async begin(remembered: RememberedSale): Promise<void> {
    const listener = this.listener();
    // A subscription that overtakes the driver's own first commands makes them fail, and the connection with them. A later refusal tries again.
    if (!this.connections.isReady(listener)) return this.forget(remembered);
    try {
      // First the ear, then the eye: a change between the two is heard.
      await guardRedis(listener.subscribe(this.checks.channelOf(remembered.partition, remembered.voucherId)));
      remembered.listening = true;
      await this.check(remembered.partition, [remembered]);
    } catch (error) {
      this.forget(remembered);
      this.report(error);
    }
  }

  private async check(partition: number, sales: readonly RememberedSale[]): Promise<void> {
    const sentMs = performance.now();
    let check: SaleCheck;
    try {
      check = await this.checks.check(
        partition,
        sales.map(({ voucherId }) => voucherId),
      );
    } catch (error) {
      for (const each of sales) this.forget(each);
      this.report(error);
      return;
    }
    const answeredMs = performance.now();
    sales.forEach((remembered, at) => {
      const sale = check.kind === 'OPEN' ? check.sales[at] : undefined;
      if (check.kind === 'CLOSED' || sale === undefined) return this.forget(remembered);
      // Forgotten while the check was under way: what it saw may be older than what made us forget.
      if (this.sales.get(remembered.voucherId) !== remembered) return;
      this.learn(remembered, { sentMs, answeredMs, serverMs: check.serverMs, history: check.history, sale });
    });
  }

  private learn(remembered: RememberedSale, proof: Proof): void {
    if (remembered.buyers !== undefined && !sameState(remembered.proof, proof)) this.dropBuyers(remembered);
    remembered.proof = proof;
    if (isFinal(proof) && remembered.buyers === undefined && !remembered.loading) void this.load(remembered, proof);
  }

  /** Reads the buyers of the state that `before` proved; they count only if the state is still the same behind the reading. */
  private async load(remembered: RememberedSale, before: Proof): Promise<void> {
    const { partition, voucherId } = remembered;
    const { marks } = before.sale;
    const bytes = BuyerFilter.bytesFor(marks);
    if (this.filterBytes + bytes > MAX_FILTER_BYTES) return;
    remembered.loading = true;
    // Taken before the reading: many sales may be read at once.
    this.filterBytes += bytes;
    try {
      const buyers = new BuyerFilter(marks);
      for await (const piece of this.register.scanMarks(partition, voucherId)) {
        for (const { userId } of piece) buyers.add(userId);
      }
      const sentMs = performance.now();
      const check = await this.checks.check(partition, [voucherId]);
      const sale = check.kind === 'OPEN' ? check.sales[0] : undefined;
      if (check.kind === 'CLOSED' || sale === undefined) return this.forget(remembered);
      if (this.sales.get(voucherId) !== remembered) return;
      const after = { sentMs, answeredMs: performance.now(), serverMs: check.serverMs, history: check.history, sale };
      if (sameState(before, after)) {
        remembered.buyers = buyers;
        this.filterBytes += buyers.bytes;
      }
      this.learn(remembered, after);
    } catch (error) {
      this.forget(remembered);
      this.report(error);
    } finally {
      remembered.loading = false;
      this.filterBytes -= bytes;
    }
  }

  private listener(): RedisConnection {
    if (this.subscriber === undefined) {
      const subscriber = this.connections.openSubscriber('sale-changes');
      subscriber.on('message', (channel: string) => this.heard(channel));
      // What was told meanwhile was not heard.
      subscriber.on('close', () => this.forgetAll());
      this.subscriber = subscriber;
    }
    return this.subscriber;
  }

  private heard(channel: string): void {
    const voucherId = channel.slice(channel.lastIndexOf(':') + 1);
    const remembered = this.sales.get(voucherId);
    if (remembered !== undefined) this.forget(remembered);
    // Left from a lost connection of a cluster, whose driver subscribes again to all that it had.
    else this.unsubscribe(channel);
  }

  private dropIdle(): void {
    const nowMs = performance.now();
    for (const each of this.sales.values()) if (nowMs - each.askedMs > IDLE_LIFE_MS) this.forget(each);
    if (this.sales.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private forget(remembered: RememberedSale): void {
    if (this.sales.get(remembered.voucherId) !== remembered) return;
    this.dropBuyers(remembered);
    remembered.proof = undefined;
    this.sales.delete(remembered.voucherId);
    this.unsubscribe(this.checks.channelOf(remembered.partition, remembered.voucherId));
  }

  private unsubscribe(channel: string): void {
    if (this.subscriber?.status === 'ready') this.subscriber.unsubscribe(channel).catch(() => undefined);
  }

  private forgetAll(): void {
    for (const each of [...this.sales.values()]) this.forget(each);
  }

  private dropBuyers(remembered: RememberedSale): void {
    if (remembered.buyers === undefined) return;
    this.filterBytes -= remembered.buyers.bytes;
    remembered.buyers = undefined;
  }

  /** Trouble that passes shows in the purchases themselves, which then ask Redis. */
  private report(error: unknown): void {
    if (error instanceof RedisUnavailableError || this.closed) return;
    this.logger.error('refusals cannot be remembered', error instanceof Error ? error.stack : error);
  }
}

/** True where no purchase can be accepted any more under this version: sold out, or over. */
function isFinal({ serverMs, sale }: Proof): boolean {
  return sale.unitsLeft <= 0 || serverMs >= sale.endMs;
}

/** True where both name one state in which the marks do not change. */
function sameState(before: Proof | undefined, after: Proof): boolean {
  return (
    before !== undefined &&
    before.history === after.history &&
    before.sale.version === after.sale.version &&
    before.sale.marks === after.sale.marks &&
    isFinal(before) &&
    isFinal(after)
  );
}
