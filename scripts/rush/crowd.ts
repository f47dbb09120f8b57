import { BuyerConnection } from './buyer-connection.js';
import { LatencyHistogram } from './latency-histogram.js';
import type { HttpAnswer } from './response-parser.js';

/** What the crowd is sent at. */
export interface CrowdTarget {
  readonly urls: readonly string[];
  readonly voucherId: string;
  /** The token of a buyer, by his place in the crowd. */
  readonly token: (buyer: number) => string;
}

export interface CrowdSizes {
  readonly buyers: number;
  readonly connections: number;
  readonly rate: number | undefined;
  readonly tries: number;
}

/** What one buyer heard in the end. `code` is the word of the answer: QUEUED, SOLD_OUT, ..., NO_ANSWER. */
export interface Heard {
  readonly code: string;
  readonly orderId: string | undefined;
}

const ANSWER_LIMIT_MS = 10_000;
const TRY_PAUSE_MS = 100;

/**
 * A crowd of buyers. Closed load: each connection sends the next purchase when the answer to the one before is there. Open load (`rate`): purchase n is
 * due at start + n / rate whatever the answers do, waits for a free connection if it must, and its latency counts from when it was due.
 */
export class Crowd {
  /** By the buyer's place; undefined while he has not heard the end. */
  readonly heard: (Heard | undefined)[];
  /** Of every answer, in microseconds; under an open load from the intended time. */
  readonly latency = new LatencyHistogram();
  /** Open load: how much later than due a purchase was sent although a connection was free, in microseconds. */
  readonly lateness = new LatencyHistogram();
  /** Tries by the code of their answer, those that were repeated too. */
  readonly answers = new Map<string, number>();
  sent = 0;
  /** Buyers who hold an order by what they heard. */
  accepted = 0;
  /** When the last buyer was accepted (performance.now). */
  lastAcceptedMs = 0;
  startedMs = 0;
  endedMs = 0;
  /** Open load: purchases that found every connection taken when they were due. */
  waited = 0;

  private next = 0;
  private readonly connections: BuyerConnection[];

  constructor(
    private readonly target: CrowdTarget,
    private readonly sizes: CrowdSizes,
  ) {
    this.heard = new Array<Heard | undefined>(sizes.buyers).fill(undefined);
    const addresses = target.urls.map((url) => {
      const { hostname, port } = new URL(url);
      return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 80) };
    });
    const count = Math.min(sizes.connections, sizes.buyers);
    this.connections = Array.from({ length: count }, (_, nth) => new BuyerConnection(addresses, nth, ANSWER_LIMIT_MS));
  }

  /** Sends everybody; resolves when each has heard the end, or soon after `signal` was given. */
  async run(signal: AbortSignal): Promise<void> {
    const close = () => this.close();
    signal.addEventListener('abort', close, { once: true });
    this.startedMs = performance.now();
    await Promise.all(this.connections.map((connection) => this.serve(connection, signal)));
    this.endedMs = performance.now();
    signal.removeEventListener('abort', close);
  }

  /** Asks again for buyers who were told an order or a refusal; answers what each hears now. */
  async repeat(buyers: readonly number[], signal: AbortSignal): Promise<Heard[]> {
    const said = new Array<Heard>(buyers.length);
    let next = 0;
    const work = async (connection: BuyerConnection): Promise<void> => {
      for (let at = next++; at < buyers.length && !signal.aborted; at = next++)
        said[at] = await this.ask(connection, buyers[at] as number);
    };
    await Promise.all(this.connections.map(work));
    return said;
  }

  close(): void {
    for (const connection of this.connections) connection.close();
  }

  private async serve(connection: BuyerConnection, signal: AbortSignal): Promise<void> {
    for (let buyer = this.next++; buyer < this.sizes.buyers && !signal.aborted; buyer = this.next++) {
      const dueMs = await this.whenDue(buyer);
      await this.buy(connection, buyer, dueMs, signal);
    }
  }

  /** Waits until the purchase is due and answers that moment; under a closed load this is now. */
  private async whenDue(buyer: number): Promise<number> {
    const { rate } = this.sizes;
    if (rate === undefined) return performance.now();
    const dueMs = this.startedMs + (buyer * 1_000) / rate;
    const earlyMs = dueMs - performance.now();
    if (earlyMs <= 0) {
      this.waited += 1;
      return dueMs;
    }
    await pause(earlyMs);
    this.lateness.record((performance.now() - dueMs) * 1_000);
    return dueMs;
  }

  private async buy(connection: BuyerConnection, buyer: number, dueMs: number, signal: AbortSignal): Promise<void> {
    let unsure = false;
    for (let tries = 1; !signal.aborted; tries += 1) {
      this.sent += 1;
      const sentMs = tries === 1 ? dueMs : performance.now();
      const heard = await this.ask(connection, buyer);
      this.latency.record((performance.now() - sentMs) * 1_000);
      this.answers.set(heard.code, (this.answers.get(heard.code) ?? 0) + 1);
      // Who was left in doubt and is now told that he has an order has bought it.
      const mine = heard.code === 'QUEUED' || (unsure && heard.code === 'DUPLICATE_ORDER');
      const again = isPassing(heard.code) && tries < this.sizes.tries;
      if (!again) {
        if (mine) {
          this.accepted += 1;
          this.lastAcceptedMs = performance.now();
        }
        this.heard[buyer] = mine ? { ...heard, code: 'QUEUED' } : heard;
        return;
      }
      unsure ||= heard.code === 'OUTCOME_UNKNOWN' || heard.code === 'NO_ANSWER';
      await pause(TRY_PAUSE_MS * (0.5 + Math.random()));
    }
  }

  private async ask(connection: BuyerConnection, buyer: number): Promise<Heard> {
    const { voucherId, token } = this.target;
    try {
      return heardIn(
        await connection.request(
          `POST /v1/vouchers/${voucherId}/orders HTTP/1.1\r\nhost: rush\r\nauthorization: Bearer ${token(buyer)}\r\ncontent-length: 0\r\n\r\n`,
        ),
      );
    } catch (error) {
      const code = (error as { code?: string }).code === 'MALFORMED_ANSWER' ? 'MALFORMED_ANSWER' : 'NO_ANSWER';
      return { code, orderId: undefined };
    }
  }
}

/** Answers after which a buyer tries again. */
export function isPassing(code: string): boolean {
  return ['UNAVAILABLE', 'OVERLOADED', 'OUTCOME_UNKNOWN', 'RATE_LIMITED', 'NO_ANSWER'].includes(code);
}

/** What an answer says: the status of the order or the problem's code, and the order it names. */
export function heardIn({ status, body }: Pick<HttpAnswer, 'status' | 'body'>): Heard {
  let json: { status?: unknown; code?: unknown; orderId?: unknown };
  try {
    json = JSON.parse(body) as typeof json;
  } catch {
    return { code: `HTTP ${status}`, orderId: undefined };
  }
  const word = status === 202 ? json.status : json.code;
  const orderId = typeof json.orderId === 'string' ? json.orderId : undefined;
  return { code: typeof word === 'string' ? word : `HTTP ${status}`, orderId };
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
