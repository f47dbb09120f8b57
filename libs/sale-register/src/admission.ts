import { Injectable, Inject, Logger } from '@nestjs/common';
import { SETTINGS, type Settings } from '#config';
import { classifyRedisError, loadScript, RedisConnections } from '#redis';
import {
  type AdmissionCall,
  decodeAdmission,
  encodeAdmission,
  refuseAll,
  unknownAll,
  withoutConfirmation,
} from './admission-codec.js';
import { KeySpace } from './key-space.js';
import { BACKLOG_LIFE_MS, OrderLog } from './order-log.js';
import { batchPurchases, callSeconds, failedCalls, unconfirmed } from './metrics.js';
import type { AdmissionOutcome, AdmissionRequest } from './outcomes.js';

const ADMIT = loadScript(new URL('./scripts/admit.lua', import.meta.url));
/** Purchases in one script call: bounds the time for which the call holds the server. */
const MAX_CALL_PURCHASES = 1000;
const RETRY_PAUSE_MS = 20;
const LOG_PAUSE_MS = 10_000;
/** While a slot moves, a voucher with a key that does not exist yet cannot be sold: asked again for so long, because others wait behind the call. */
const MOVING_PATIENCE_MS = 200;
/** While purchases are refused for the backlog it is counted at most this often, for at most half of that time. */
const MEASURE_PAUSE_MS = 1000;
const NO_ANSWER = Symbol('no answer in time');

/** What came back for one sending. `confirmed` is false where a replica was asked for and none confirmed. */
type Sent =
  | { readonly kind: 'REPLY'; readonly reply: unknown; readonly confirmed: boolean }
  | { readonly kind: 'FAILED'; readonly error: unknown }
  | { readonly kind: 'NO_ANSWER' };

/** Sends purchases to admit.lua and turns whatever happens into an outcome for each. */
@Injectable()
export class Admission {
  private readonly logger = new Logger(Admission.name);
  private readonly turns = new Map<number, Promise<unknown>>();
  private readonly measuredAtMs = new Map<number, number>();
  private loggedAtMs = -LOG_PAUSE_MS;

  constructor(
    private readonly connections: RedisConnections,
    private readonly keySpace: KeySpace,
    private readonly orderLog: OrderLog,
    @Inject(SETTINGS) private readonly settings: Settings,
  ) {}

  /** See `SaleRegister.admit`. */
  async admit(partition: number, batch: readonly AdmissionRequest[], timeLeftMs: number): Promise<AdmissionOutcome[]> {
    const deadlineMs = performance.now() + timeLeftMs;
    const { durability } = this.settings.admission;
    const decisions: Promise<AdmissionOutcome[]>[] = [];
    for (let at = 0; at < batch.length; at += MAX_CALL_PURCHASES) {
      const requests = batch.length <= MAX_CALL_PURCHASES ? batch : batch.slice(at, at + MAX_CALL_PURCHASES);
      const call = this.encode(partition, requests);
      const decide = () => this.decide(call, deadlineMs);
      decisions.push(durability === 'replica' ? this.inTurn(partition, decide) : decide());
    }
    const outcomes =
      decisions.length === 1
        ? await (decisions[0] as Promise<AdmissionOutcome[]>)
        : (await Promise.all(decisions)).flat();
    if (outcomes.some(({ kind }) => kind === 'OVERLOADED')) this.measureBacklog(partition);
    return outcomes;
  }

  private encode(partition: number, requests: readonly AdmissionRequest[]): AdmissionCall {
    const measuredAtMs = this.measuredAtMs.get(partition);
    const isCounted = measuredAtMs !== undefined && performance.now() - measuredAtMs < BACKLOG_LIFE_MS;
    return encodeAdmission(this.keySpace, partition, requests, this.settings.admission.maxBacklog, isCounted);
  }

  /** WAIT holds up its connection: what would queue behind it waits here, where its deadline still means "not sent". */
  private inTurn(partition: number, decide: () => Promise<AdmissionOutcome[]>): Promise<AdmissionOutcome[]> {
    const turn = (this.turns.get(partition) ?? Promise.resolve()).then(decide, decide);
    this.turns.set(partition, turn);
    return turn;
  }

  private async decide(call: AdmissionCall, deadlineMs: number): Promise<AdmissionOutcome[]> {
    const startedMs = performance.now();
    batchPurchases.observe(call.requests.length);
    try {
      return await this.attempt(call, deadlineMs);
    } catch (error) {
      // A script error or a reply outside the contract is a defect, and leaves open what the script did.
      this.fail('DEFECT', error);
      return unknownAll(call.requests);
    } finally {
      callSeconds.observe((performance.now() - startedMs) / 1000);
    }
  }

  /** Repeats with the same ids what certainly had no effect and may succeed, until the deadline. */
  private async attempt(call: AdmissionCall, deadlineMs: number): Promise<AdmissionOutcome[]> {
    let known = true;
    const patientUntilMs = performance.now() + MOVING_PATIENCE_MS;
    for (let attempt = 0; ; attempt++) {
      const leftMs = deadlineMs - performance.now();
      if (leftMs <= 0) return refuseAll(call.requests, attempt === 0 ? 'NOT_SENT' : 'SERVER_STATE');
      if (!this.connections.isReady(this.connections.admission)) return refuseAll(call.requests, 'NOT_SENT');
      const sent = await this.send(call, known, leftMs);
      if (sent.kind === 'NO_ANSWER') {
        failedCalls.inc({ why: 'NO_ANSWER' });
        return unknownAll(call.requests);
      }
      if (sent.kind === 'REPLY') return this.decoded(call, sent);
      const { sent: left, refused, passing, state } = classifyRedisError(sent.error);
      if (state === 'NOSCRIPT' && known) {
        known = false;
      } else if (refused && state === 'TRYAGAIN' && call.groups.length > 1) {
        return this.apart(call, deadlineMs);
      } else if (refused && state === 'TRYAGAIN' && performance.now() >= patientUntilMs) {
        this.fail(state, sent.error);
        return refuseAll(call.requests, 'SERVER_STATE');
      } else if (refused && (state === 'MOVED' || state === 'ASK' || state === 'TRYAGAIN')) {
        await this.followSlots(call, Math.min(RETRY_PAUSE_MS, leftMs));
      } else if (!passing) {
        throw sent.error;
      } else {
        this.fail(state ?? (left ? 'LOST' : 'NOT_SENT'), sent.error);
        if (!left) return refuseAll(call.requests, 'NOT_SENT');
        return refused ? refuseAll(call.requests, 'SERVER_STATE') : unknownAll(call.requests);
      }
    }
  }

  /** One call for each voucher: what keeps one of them from being decided is none of the others' business. */
  private async apart(call: AdmissionCall, deadlineMs: number): Promise<AdmissionOutcome[]> {
    const outcomes = new Array<AdmissionOutcome>(call.requests.length);
    await Promise.all(
      call.groups.map(async (positions) => {
        const requests = positions.map((at) => call.requests[at] as AdmissionRequest);
        const decided = await this.attempt(this.encode(call.partition, requests), deadlineMs);
        positions.forEach((at, nth) => (outcomes[at] = decided[nth] as AdmissionOutcome));
      }),
    );
    return outcomes;
  }

  private async send(call: AdmissionCall, known: boolean, leftMs: number): Promise<Sent> {
    try {
      const answer = await within(this.transmit(call, known, leftMs), leftMs);
      return answer === NO_ANSWER ? { kind: 'NO_ANSWER' } : { kind: 'REPLY', ...answer };
    } catch (error) {
      return { kind: 'FAILED', error };
    }
  }

  private async transmit(
    call: AdmissionCall,
    known: boolean,
    leftMs: number,
  ): Promise<{ reply: unknown; confirmed: boolean }> {
    const connection = this.connections.admission;
    const { keys, args } = call;
    if (this.settings.admission.durability === 'local') {
      const reply = known
        ? await connection.evalsha(ADMIT.sha1, keys.length, ...keys, ...args)
        : await connection.eval(ADMIT.source, keys.length, ...keys, ...args);
      return { reply, confirmed: true };
    }
    const pipeline = connection.pipeline();
    if (known) pipeline.evalsha(ADMIT.sha1, keys.length, ...keys, ...args);
    else pipeline.eval(ADMIT.source, keys.length, ...keys, ...args);
    // At most half of the time left, and never longer than the connection lives without an answer.
    const waitMs = Math.max(1, Math.floor(Math.min(leftMs, this.settings.http.requestTimeoutMs) / 2));
    // In one pipeline, so on the script's own connection: WAIT means the writes of its connection.
    const results = await pipeline.call('WAIT', '1', String(waitMs)).exec();
    const [script, wait] = results ?? [];
    if (script === undefined) throw new Error('Connection is closed.');
    if (script[0] !== null) throw script[0];
    return { reply: script[1], confirmed: wait !== undefined && wait[0] === null && Number(wait[1]) >= 1 };
  }

  private decoded(call: AdmissionCall, sent: { reply: unknown; confirmed: boolean }): AdmissionOutcome[] {
    const outcomes = decodeAdmission(call, sent.reply);
    if (sent.confirmed) return outcomes;
    const truthful = withoutConfirmation(outcomes);
    unconfirmed.inc(truthful.filter(({ kind }) => kind === 'OUTCOME_UNKNOWN').length);
    return truthful;
  }

  /** Where the server cannot tell the lag the script took all entries for backlog: counts them, in the background, for the next calls. */
  private measureBacklog(partition: number): void {
    const nowMs = performance.now();
    if (nowMs - (this.measuredAtMs.get(partition) ?? -MEASURE_PAUSE_MS) < MEASURE_PAUSE_MS) return;
    this.measuredAtMs.set(partition, nowMs);
    this.orderLog
      .measureBacklog(partition, MEASURE_PAUSE_MS / 2)
      .catch((error: unknown) => this.fail('BACKLOG', error));
  }

  /** A pipeline does not follow redirections: a single command does, and teaches the driver where the slot is now. */
  private async followSlots(call: AdmissionCall, pauseMs: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    await this.connections.admission.exists(call.keys[0] as string).catch(() => undefined);
  }

  private fail(why: string, error: unknown): void {
    failedCalls.inc({ why });
    const nowMs = performance.now();
    if (nowMs - this.loggedAtMs < LOG_PAUSE_MS) return;
    this.loggedAtMs = nowMs;
    const text = `Purchases are not decided (${why}): ${error instanceof Error ? error.message : 'error'}`;
    if (why === 'DEFECT') this.logger.error(text);
    else this.logger.warn(text);
  }
}

/** The call's value, or NO_ANSWER after `limitMs`; a late answer is dropped. */
async function within<T>(call: Promise<T>, limitMs: number): Promise<T | typeof NO_ANSWER> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<typeof NO_ANSWER>((resolve) => {
    timer = setTimeout(resolve, limitMs, NO_ANSWER);
  });
  try {
    return await Promise.race([call, limit]);
  } finally {
    clearTimeout(timer);
    call.catch(() => undefined);
  }
}
