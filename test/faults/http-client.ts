import { connect, type Socket } from 'node:net';

export interface HttpAnswer {
  readonly status: number;
  readonly body: string;
}

/** No answer came. `late`: the time was up while the connection stood. */
export class NoAnswerError extends Error {
  constructor(
    message: string,
    readonly late = false,
  ) {
    super(message);
  }
}

/** One keep-alive connection, one request at a time. Opened when needed, and again after it was lost. */
export class HttpConnection {
  private socket: Socket | undefined;
  private held: Buffer = Buffer.alloc(0);
  private settle: ((result: HttpAnswer | NoAnswerError) => void) | undefined;

  constructor(
    private readonly port: number,
    private readonly limitMs: number,
  ) {}

  /** Sends the whole text of a request. @throws NoAnswerError */
  request(text: string): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => this.lose(new NoAnswerError(`no answer within ${this.limitMs} ms`, true)),
        this.limitMs,
      );
      this.settle = (result) => {
        clearTimeout(timer);
        this.settle = undefined;
        if (result instanceof NoAnswerError) reject(result);
        else resolve(result);
      };
      this.socket ??= this.open();
      this.socket.write(text, 'latin1');
    });
  }

  /** Sends a request and drops the connection when the bytes are out: the answer is never heard. */
  sendAndDrop(text: string): Promise<void> {
    const socket = this.socket ?? this.open();
    this.socket = undefined;
    return new Promise((resolve) => {
      socket.once('close', () => resolve());
      socket.write(text, 'latin1', () => socket.destroy());
    });
  }

  close(): void {
    this.lose(new NoAnswerError('closed by the client'));
  }

  private open(): Socket {
    const socket = connect({ port: this.port, host: '127.0.0.1', noDelay: true });
    this.held = Buffer.alloc(0);
    const lost = (why: string) => {
      if (socket === this.socket) this.lose(new NoAnswerError(why));
    };
    socket.on('error', (error) => lost(error.message));
    socket.on('close', () => lost('the connection was cut'));
    socket.on('data', (chunk) => {
      if (socket === this.socket) this.take(chunk);
    });
    return socket;
  }

  private take(chunk: Buffer): void {
    this.held = this.held.length === 0 ? chunk : Buffer.concat([this.held, chunk]);
    const headEnd = this.held.indexOf('\r\n\r\n');
    if (headEnd < 0) return;
    const head = this.held.toString('latin1', 0, headEnd + 2);
    const length = Number(/\r\ncontent-length: *(\d+)\r\n/i.exec(head)?.[1] ?? '0');
    if (this.held.length < headEnd + 4 + length) return;
    const body = this.held.toString('utf8', headEnd + 4, headEnd + 4 + length);
    this.held = Buffer.alloc(0);
    const { settle } = this;
    if (/\r\nconnection: *close/i.test(head)) this.forget();
    settle?.({ status: Number(head.slice(9, 12)), body });
  }

  private lose(error: NoAnswerError): void {
    const { settle } = this;
    this.forget();
    settle?.(error);
  }

  private forget(): void {
    const { socket } = this;
    this.socket = undefined;
    socket?.destroy();
  }
}
