import type { HttpAnswer, NoAnswerError } from './http-client.js';

/**
 * What a client knows after a call. ACCEPTED and DUPLICATE name an order that is his. REFUSED: it had no effect. UNKNOWN: it may have had one.
 * DEFECT: an answer that must never be given.
 */
export type Knowledge = 'ACCEPTED' | 'DUPLICATE' | 'REFUSED' | 'UNKNOWN' | 'DEFECT';

export interface Call {
  readonly voucherId: string;
  readonly userId: string;
  readonly knowledge: Knowledge;
  /** The problem's code, QUEUED, or NO_ANSWER. */
  readonly code: string;
  readonly orderId: string | undefined;
  readonly candidateOrderId: string | undefined;
  /** `performance.now()` of this process when it was sent. */
  readonly sentAtMs: number;
  readonly tookMs: number;
}

const NO_EFFECT = new Set([
  'SOLD_OUT',
  'NOT_STARTED',
  'ENDED',
  'UNAVAILABLE',
  'OVERLOADED',
  'UNAUTHENTICATED',
  'FORBIDDEN',
  'VOUCHER_NOT_FOUND',
  'INVALID_ARGUMENT',
  'PAYLOAD_TOO_LARGE',
]);

/** Every call of every client of one scenario, with what the client knew after it. */
export class History {
  readonly calls: Call[] = [];
  private readonly listeners = new Set<() => void>();

  record(call: Call): void {
    this.calls.push(call);
    for (const listener of this.listeners) listener();
  }

  /** Resolves when so many calls fit, counted from now on; rejects at the limit. */
  when(count: number, fits: (call: Call) => boolean, limitMs: number, what: string): Promise<void> {
    let seen = 0;
    let at = this.calls.length;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.listeners.delete(look);
        reject(new Error(`${what}: only ${seen} of ${count} within ${limitMs} ms`));
      }, limitMs);
      const look = () => {
        for (; at < this.calls.length; at += 1) if (fits(this.calls[at] as Call)) seen += 1;
        if (seen < count) return;
        clearTimeout(timer);
        this.listeners.delete(look);
        resolve();
      };
      this.listeners.add(look);
      look();
    });
  }

  of(voucherId: string): Call[] {
    return this.calls.filter((call) => call.voucherId === voucherId);
  }

  count(fits: (call: Call) => boolean): number {
    return this.calls.reduce((sum, call) => sum + (fits(call) ? 1 : 0), 0);
  }
}

/** What an answer tells the client. */
export function learn(answer: HttpAnswer): Pick<Call, 'knowledge' | 'code' | 'orderId' | 'candidateOrderId'> {
  let json: { status?: unknown; code?: unknown; orderId?: unknown; candidateOrderId?: unknown } = {};
  try {
    json = JSON.parse(answer.body) as typeof json;
  } catch {
    return {
      knowledge: 'DEFECT',
      code: `HTTP_${answer.status}_NO_JSON`,
      orderId: undefined,
      candidateOrderId: undefined,
    };
  }
  const orderId = typeof json.orderId === 'string' ? json.orderId : undefined;
  const candidateOrderId = typeof json.candidateOrderId === 'string' ? json.candidateOrderId : undefined;
  const code = answer.status === 202 ? String(json.status) : String(json.code);
  const named = { code, orderId, candidateOrderId };
  if (answer.status === 202 && orderId !== undefined) return { knowledge: 'ACCEPTED', ...named };
  if (code === 'DUPLICATE_ORDER' && orderId !== undefined) return { knowledge: 'DUPLICATE', ...named };
  if (code === 'OUTCOME_UNKNOWN' && answer.status === 503) return { knowledge: 'UNKNOWN', ...named };
  if (NO_EFFECT.has(code) && answer.status !== 500) return { knowledge: 'REFUSED', ...named };
  return { knowledge: 'DEFECT', ...named, code: `HTTP_${answer.status}_${code}` };
}

/** What a client knows who heard nothing. */
export function unheard(error: NoAnswerError): Pick<Call, 'knowledge' | 'code' | 'orderId' | 'candidateOrderId'> {
  return {
    knowledge: 'UNKNOWN',
    code: error.late ? 'NO_ANSWER_IN_TIME' : 'NO_ANSWER',
    orderId: undefined,
    candidateOrderId: undefined,
  };
}
