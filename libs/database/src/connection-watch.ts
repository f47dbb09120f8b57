import type { ClientWatch, WatchedClient } from './watched-client.js';
import type { ConnectionPolicy } from './connection-policy.js';

/** What is known about the pool's connections at this moment: who is open, when the server last answered, and whom to tell about doubts. */
export class ConnectionWatch {
  private readonly open = new Set<WatchedClient>();
  private lastAnswer = 0;
  private doubt: () => void = () => undefined;

  /** Unix milliseconds of the last full answer on any connection of the pool; 0 before the first. */
  get lastAnswerAtMs(): number {
    return this.lastAnswer;
  }

  get openConnections(): number {
    return this.open.size;
  }

  /** `listener` is called whenever an answer is late. */
  onDoubt(listener: () => void): void {
    this.doubt = listener;
  }

  /** Cuts every connection of the pool; work in hand fails with `reason`. */
  cutAll(reason: Error): void {
    for (const client of this.open) client.cut(reason);
  }

  clientWatch(policy: ConnectionPolicy): ClientWatch {
    return {
      answerDeadlineMs: policy.answerDeadlineMs,
      suspectAfterMs: policy.suspectAfterMs,
      onAnswer: () => (this.lastAnswer = Date.now()),
      onSlow: () => this.doubt(),
      onOpen: (client) => this.open.add(client),
      onClosed: (client) => this.open.delete(client),
    };
  }
}
