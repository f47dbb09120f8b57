import type { ClientWatch, WatchedClient } from './watched-client.js';
import type { ConnectionPolicy } from './connection-policy.js';

/** What is known about the pool's connections at this moment: who is open, how often the server answered, and whom to tell about doubts. */
export class ConnectionWatch {
  private readonly open = new Set<WatchedClient>();
  private answered = 0;
  private doubt: () => void = () => undefined;

  /** How often the server has answered in full, on any connection of the pool. */
  get answers(): number {
    return this.answered;
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
      onAnswer: () => (this.answered += 1),
      onSlow: () => this.doubt(),
      onOpen: (client) => this.open.add(client),
      onClosed: (client) => this.open.delete(client),
    };
  }
}
