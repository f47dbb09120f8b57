import { tokenBatchSize } from './metrics.js';

/** Most tokens that one call looks up. */
const MAX_BATCH_SIZE = 500;
/** Most tokens in calls that are sent and not yet answered: four full calls; tokens that come meanwhile make the next call larger. */
const MAX_TOKENS_IN_FLIGHT = 4 * MAX_BATCH_SIZE;
/** Most calls at the same time, where a call takes more than one token. */
const MAX_CALLS_IN_FLIGHT = 4;

/** The user id under each token, in order; undefined where nobody is logged in under it. */
export type LookUpTokens = (tokens: readonly string[]) => Promise<readonly (string | undefined)[]>;

interface Question {
  readonly answer: Promise<string | undefined>;
  readonly resolve: (userId: string | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/** More tokens wait for an answer than this process may hold. */
export class LoginsUnavailableError extends Error {
  override readonly name = 'LoginsUnavailableError';
  /** The HTTP side knows passing trouble by this ending. */
  readonly code = 'LOGINS_UNAVAILABLE';
}

/**
 * Lets all tokens of one tick travel in one call; the same token travels once. An answer was read after the question was asked: nothing is
 * remembered, so a login that ended is over at once, in every process.
 */
export class TokenBatcher {
  private waiting = new Map<string, Question>();
  private callsInFlight = 0;
  private inHand = 0;
  private flushIsDue = false;
  private readonly maxCalls: number;

  /** `maxBatchSize` 1: nothing is gained by waiting for company, so as many tokens travel at once, each in a call of its own. */
  constructor(
    private readonly lookUp: LookUpTokens,
    private readonly maxInHand: number,
    private readonly maxBatchSize = MAX_BATCH_SIZE,
  ) {
    this.maxCalls = maxBatchSize === 1 ? MAX_TOKENS_IN_FLIGHT : MAX_CALLS_IN_FLIGHT;
  }

  /** The user id under the token, or undefined. Rejects as the look-up does, and with LoginsUnavailableError above `maxInHand` tokens. */
  find(token: string): Promise<string | undefined> {
    const present = this.waiting.get(token);
    if (present !== undefined) return present.answer;
    if (this.inHand >= this.maxInHand)
      return Promise.reject(new LoginsUnavailableError(`${this.inHand} tokens are being looked up`));
    const question = newQuestion();
    this.waiting.set(token, question);
    this.inHand += 1;
    this.flushSoon();
    return question.answer;
  }

  private flushSoon(): void {
    if (this.flushIsDue) return;
    this.flushIsDue = true;
    setImmediate(this.flush);
  }

  private readonly flush = (): void => {
    this.flushIsDue = false;
    while (this.waiting.size > 0 && this.callsInFlight < this.maxCalls) void this.ask(this.takeBatch());
  };

  private takeBatch(): Map<string, Question> {
    const all = this.waiting;
    if (all.size <= this.maxBatchSize) {
      this.waiting = new Map();
      return all;
    }
    const batch = new Map<string, Question>();
    for (const [token, question] of all) {
      if (batch.size === this.maxBatchSize) break;
      batch.set(token, question);
      all.delete(token);
    }
    return batch;
  }

  private async ask(batch: ReadonlyMap<string, Question>): Promise<void> {
    this.callsInFlight += 1;
    tokenBatchSize.observe(batch.size);
    try {
      const users = await this.lookUp([...batch.keys()]);
      if (users.length !== batch.size) throw new Error(`${users.length} answers to ${batch.size} tokens`);
      let index = 0;
      for (const { resolve } of batch.values()) resolve(users[index++]);
    } catch (error) {
      for (const { reject } of batch.values()) reject(error);
    } finally {
      this.callsInFlight -= 1;
      this.inHand -= batch.size;
      if (this.waiting.size > 0) this.flushSoon();
    }
  }
}

function newQuestion(): Question {
  let resolve: Question['resolve'] = () => undefined;
  let reject: Question['reject'] = () => undefined;
  const answer = new Promise<string | undefined>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { answer, resolve, reject };
}
