import pg from 'pg';

/** What a watched client tells its owner, and the limits it keeps. */
export interface ClientWatch {
  readonly answerDeadlineMs: number;
  readonly suspectAfterMs: number;
  /** Called each time the server has answered everything that was asked. */
  readonly onAnswer: () => void;
  /** Called when an answer is later than `suspectAfterMs`, and again at each further such span. */
  readonly onSlow: () => void;
  readonly onOpen: (client: WatchedClient) => void;
  readonly onClosed: (client: WatchedClient) => void;
}

/** The server did not answer in time; the connection was cut, for nothing sound can be said of it any more. */
export class DatabaseDeadlineError extends Error {
  readonly code = 'DATABASE_DEADLINE';

  constructor(waitedMs: number) {
    super(`no answer within ${waitedMs} ms`);
    this.name = 'DatabaseDeadlineError';
  }
}

/** After this span a peaceful good-bye has failed: a frozen server never closes its side. */
const CLOSE_LIMIT_MS = 500;

/** A pg client that waits for no answer longer than its deadline, and closes in bounded time. */
export interface WatchedClient extends pg.Client {
  /** Cuts the connection at once; a query in hand fails with `reason`. */
  cut(reason: Error): void;
}

/**
 * Makes the client class of one pool. pg's own query_timeout fails the query but leaves the connection in the pool, where the next user waits
 * behind the unanswered query; here the socket is cut, so the pool drops it.
 */
export function watchedClientClass(watch: ClientWatch): new (config?: pg.ClientConfig) => WatchedClient {
  return class extends pg.Client implements WatchedClient {
    private timer: NodeJS.Timeout | undefined;
    private askedAtMs = 0;
    private gone = false;

    constructor(config?: pg.ClientConfig) {
      super(config);
      this.on('drain', () => this.answered());
      this.once('connect', () => watch.onOpen(this));
      this.once('end', () => {
        this.gone = true;
        clearTimeout(this.timer);
        watch.onClosed(this);
      });
    }

    // The overloads of pg's query cannot be restated one by one; arguments and result pass through untouched.
    override query = ((...args: Parameters<pg.Client['query']>) => {
      this.askedAtMs = Date.now();
      if (!this.gone) this.timer ??= setTimeout(() => this.overdue(), watch.suspectAfterMs);
      return super.query(...args);
    }) as unknown as pg.Client['query'];

    override end(callback?: (error: Error) => void): Promise<void> {
      const limit = setTimeout(() => this.connection.stream.destroy(), CLOSE_LIMIT_MS);
      this.once('end', () => clearTimeout(limit));
      return callback === undefined ? super.end() : (super.end(callback) as unknown as Promise<void>);
    }

    cut(reason: Error): void {
      clearTimeout(this.timer);
      this.connection.stream.destroy(reason);
    }

    private answered(): void {
      clearTimeout(this.timer);
      this.timer = undefined;
      watch.onAnswer();
    }

    private overdue(): void {
      const waitedMs = Date.now() - this.askedAtMs;
      if (waitedMs >= watch.answerDeadlineMs) return this.cut(new DatabaseDeadlineError(watch.answerDeadlineMs));
      this.timer = setTimeout(() => this.overdue(), Math.min(watch.suspectAfterMs, watch.answerDeadlineMs - waitedMs));
      watch.onSlow();
    }
  };
}
