import { connect, type Socket } from 'node:net';
import { type HttpAnswer, ResponseParser } from './response-parser.js';

/** No answer came: the connection could not be made, was cut, or the time was up. */
export class NoAnswerError extends Error {
  readonly code = 'NO_ANSWER';
}

interface Waiting {
  readonly resolve: (answer: HttpAnswer) => void;
  readonly reject: (error: Error) => void;
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

/**
 * One keep-alive connection that carries one request at a time. It is opened with the first request, and again after it was closed: where it was
 * lost, to the next of the addresses, as a load balancer would. Plain sockets, so that the generator costs little beside what it measures.
 */
export class BuyerConnection {
  private socket: Socket | undefined;
  private parser = new ResponseParser();
  private waiting: Waiting | undefined;
  /** How often it was opened. */
  opened = 0;

  constructor(
    private readonly addresses: readonly Address[],
    private at: number,
    private readonly timeoutMs: number,
  ) {}

  /**
   * Sends one request (its whole text) and resolves with the answer.
   * @throws NoAnswerError, MalformedAnswerError
   */
  request(text: string): Promise<HttpAnswer> {
    if (this.waiting !== undefined) return Promise.reject(new Error('a request is in flight on this connection'));
    return new Promise((resolve, reject) => {
      this.waiting = { resolve, reject };
      this.socket ??= this.open();
      this.socket.write(text, 'latin1');
    });
  }

  /** Closes it; a request in flight fails. */
  close(): void {
    this.drop('the connection was closed');
  }

  private open(): Socket {
    const { host, port } = this.addresses[this.at % this.addresses.length] as Address;
    const socket = connect({ host, port, noDelay: true });
    this.opened += 1;
    this.parser = new ResponseParser();
    socket.setTimeout(this.timeoutMs, () => this.lost(socket, `no answer within ${this.timeoutMs} ms`));
    socket.on('data', (chunk) => this.take(socket, chunk));
    socket.on('error', (error) => this.lost(socket, error.message));
    socket.on('close', () => this.lost(socket, 'the connection was cut'));
    return socket;
  }

  private take(socket: Socket, chunk: Buffer): void {
    if (socket !== this.socket) return;
    try {
      const answer = this.parser.push(chunk);
      if (answer === undefined) return;
      const { waiting } = this;
      this.waiting = undefined;
      if (answer.closes || waiting === undefined || !this.parser.isClean) this.drop('the server closed it');
      waiting?.resolve(answer);
    } catch (error) {
      const { waiting } = this;
      this.waiting = undefined;
      this.drop('malformed');
      waiting?.reject(error as Error);
    }
  }

  private lost(socket: Socket, why: string): void {
    if (socket !== this.socket) return;
    this.at += 1;
    this.drop(why);
  }

  private drop(why: string): void {
    const { socket, waiting } = this;
    this.socket = undefined;
    this.waiting = undefined;
    socket?.destroy();
    waiting?.reject(new NoAnswerError(why));
  }
}
