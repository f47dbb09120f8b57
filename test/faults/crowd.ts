import { signToken } from '../../scripts/services/signed-token.mjs';
import { type Call, type History, learn, unheard } from './history.js';
import { HttpConnection, NoAnswerError } from './http-client.js';
import type { Random } from './random.js';
import { pause } from '../support/waiting.js';
import { FAULT_SECRET } from './world.js';

/** A purchase is answered within the product's deadline; this is far above it, so that only an answer that never comes is missed. */
const CALL_LIMIT_MS = 15_000;
const TRY_PAUSE_MS = 150;

export interface CrowdOptions {
  readonly voucherId: string;
  /** Ports of the API processes. */
  readonly ports: readonly number[];
  readonly users: readonly string[];
  /** Users at work at the same time, each on a connection of his own. */
  readonly inFlight: number;
  /** Tries of a user who was refused for now, or left in doubt. */
  readonly tries: number;
  readonly tryPauseMs?: number;
  readonly thinkMs?: number;
  /** The share of calls whose client drops the connection right after sending. */
  readonly dropShare?: number;
}

const tokens = new Map<string, string>();

export function tokenOf(userId: string): string {
  const known = tokens.get(userId);
  if (known !== undefined) return known;
  const token = signToken({ secret: FAULT_SECRET, user: userId });
  if (tokens.size > 100_000) tokens.clear();
  tokens.set(userId, token);
  return token;
}

export function purchaseText(voucherId: string, token: string): string {
  return `POST /v1/vouchers/${voucherId}/orders HTTP/1.1\r\nhost: faults\r\nauthorization: Bearer ${token}\r\ncontent-length: 0\r\n\r\n`;
}

/** One purchase on the connection, recorded. Never rejects. */
export async function purchase(
  connection: HttpConnection,
  history: History,
  voucherId: string,
  userId: string,
): Promise<Call> {
  const sentMs = performance.now();
  let known;
  try {
    known = learn(await connection.request(purchaseText(voucherId, tokenOf(userId))));
  } catch (error) {
    if (!(error instanceof NoAnswerError)) throw error;
    known = unheard(error);
  }
  const call = { voucherId, userId, ...known, sentAtMs: sentMs, tookMs: performance.now() - sentMs };
  history.record(call);
  return call;
}

/** Whether a further try may tell the client more. */
export function isOpen({ knowledge, code }: Call): boolean {
  return knowledge === 'UNKNOWN' || code === 'UNAVAILABLE' || code === 'OVERLOADED';
}

/** Buyers who all want one unit of one voucher. Users are served in turn, so many at a time. */
export class Crowd {
  private next = 0;
  private stopped = false;

  constructor(
    private readonly options: CrowdOptions,
    private readonly history: History,
    private readonly random: Random,
  ) {}

  /** Resolves when each user has got a final answer or has used up his tries. */
  async run(): Promise<void> {
    const { inFlight, users } = this.options;
    await Promise.all(Array.from({ length: Math.min(inFlight, users.length) }, (_, nth) => this.serve(nth)));
  }

  /** Users who were not yet served are not served any more. */
  stop(): void {
    this.stopped = true;
  }

  private async serve(nth: number): Promise<void> {
    const { ports, users, voucherId, tries, tryPauseMs = TRY_PAUSE_MS, thinkMs = 0, dropShare = 0 } = this.options;
    const connections = ports.map((port) => new HttpConnection(port, CALL_LIMIT_MS));
    try {
      for (let at = this.next++; at < users.length && !this.stopped; at = this.next++) {
        const userId = users[at] as string;
        if (thinkMs > 0) await pause(2 * thinkMs * this.random.next());
        for (let tried = 1; tried <= tries; tried += 1) {
          // A user who tries again is as likely served by the other process.
          const connection = connections[(nth + tried) % connections.length] as HttpConnection;
          if (this.random.chance(dropShare)) {
            await this.drop(connection, userId);
            continue;
          }
          const call = await purchase(connection, this.history, voucherId, userId);
          if (!isOpen(call)) break;
          if (tried < tries) await pause(tryPauseMs * (0.5 + this.random.next()));
        }
      }
    } finally {
      for (const connection of connections) connection.close();
    }
  }

  private async drop(connection: HttpConnection, userId: string): Promise<void> {
    const { voucherId } = this.options;
    const sentAtMs = performance.now();
    await connection.sendAndDrop(purchaseText(voucherId, tokenOf(userId)));
    const unknown = {
      knowledge: 'UNKNOWN',
      code: 'NO_ANSWER',
      orderId: undefined,
      candidateOrderId: undefined,
    } as const;
    this.history.record({ voucherId, userId, ...unknown, sentAtMs, tookMs: 0 });
  }
}
