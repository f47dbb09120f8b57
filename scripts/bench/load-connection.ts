import { connect, type Socket } from 'node:net';

const HEAD_END = Buffer.from('\r\n\r\n');
const LENGTH = Buffer.from('\r\ncontent-length: ');
const LENGTH_CAPITAL = Buffer.from('\r\nContent-Length: ');
const ZERO = 48;

/** Hears of each answer: its status, and the whole bytes. 0 where the connection broke. */
export type OnAnswer = (status: number) => void;

/**
 * One keep-alive connection with one request in flight, made to cost as little as can be: it reads the status and skips the rest by content-length.
 * The servers of the bench all answer with one.
 */
export class LoadConnection {
  private socket: Socket | undefined;
  private held: Buffer | undefined;
  private onAnswer: OnAnswer | undefined;

  constructor(private readonly port: number) {}

  /** Resolves when it is connected. */
  open(): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port: this.port, noDelay: true });
      this.socket = socket;
      socket.once('connect', resolve);
      socket.once('error', reject);
      socket.on('error', () => this.finish(0));
      socket.on('close', () => this.finish(0));
      socket.on('data', (chunk) => this.take(chunk));
    });
  }

  /** Sends one request; `onAnswer` is called once. */
  send(request: string, onAnswer: OnAnswer): void {
    this.onAnswer = onAnswer;
    if (this.socket === undefined || this.socket.destroyed) this.finish(0);
    else this.socket.write(request, 'latin1');
  }

  close(): void {
    this.onAnswer = undefined;
    this.socket?.destroy();
  }

  private take(chunk: Buffer): void {
    const bytes = this.held === undefined ? chunk : Buffer.concat([this.held, chunk]);
    this.held = bytes;
    const headEnd = bytes.indexOf(HEAD_END);
    if (headEnd < 0) return;
    let at = bytes.indexOf(LENGTH);
    if (at < 0) at = bytes.indexOf(LENGTH_CAPITAL);
    if (at < 0 || at > headEnd) throw new Error('an answer without content-length');
    let length = 0;
    for (let i = at + LENGTH.length; bytes[i] !== 13; i += 1) length = length * 10 + (bytes[i] as number) - ZERO;
    if (bytes.length < headEnd + 4 + length) return;
    this.held = undefined;
    const digit = (place: number): number => (bytes[place] as number) - ZERO;
    this.finish(digit(9) * 100 + digit(10) * 10 + digit(11));
  }

  private finish(status: number): void {
    const { onAnswer } = this;
    this.onAnswer = undefined;
    onAnswer?.(status);
  }
}
