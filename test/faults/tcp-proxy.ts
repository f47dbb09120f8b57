import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { pause } from '../support/waiting.js';

/** What becomes of a piece of traffic: it goes on, it is lost and the connection cut, or it goes on and the connection is cut behind it. */
export type Verdict = 'FORWARD' | 'LOSE_AND_CUT' | 'FORWARD_AND_CUT';

/** Looks at each piece of traffic of a link; `name` is the name that a Redis client gave itself (CLIENT SETNAME), else empty. */
export type Inspector = (chunk: Buffer, name: string) => Verdict;

type Mode = 'PASS' | 'REFUSE' | 'STALL' | 'BLACK_HOLE';

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  name: string;
  /** Traffic that waits for the end of a stall. */
  readonly held: (() => void)[];
  /** Pieces that are under way late, and the end of their queue. */
  late: number;
  tail: Promise<void>;
  lost: boolean;
}

/**
 * One TCP link that can go wrong: between a client process and a server. It can refuse, cut, half-close, delay, stall (what was sent arrives when
 * the stall ends, as after a broken route) and swallow (a black hole; its connections are cut when it ends).
 */
export class TcpProxy {
  /** Added to each piece of traffic, in both directions. */
  delayMs = 0;
  onRequest: Inspector | undefined;
  onReply: Inspector | undefined;
  private mode: Mode = 'PASS';
  private readonly pairs = new Set<Pair>();

  private constructor(
    private readonly server: Server,
    readonly port: number,
    public targetPort: number,
  ) {
    server.on('connection', (socket) => this.accept(socket));
  }

  static open(targetPort: number): Promise<TcpProxy> {
    const server = createServer({ noDelay: true, allowHalfOpen: true });
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, '127.0.0.1', () => {
        resolve(new TcpProxy(server, (server.address() as AddressInfo).port, targetPort));
      });
    });
  }

  get connections(): number {
    return this.pairs.size;
  }

  /** Everything as it should be again. */
  heal(): void {
    const before = this.mode;
    this.mode = 'PASS';
    this.delayMs = 0;
    this.onRequest = undefined;
    this.onReply = undefined;
    if (before === 'BLACK_HOLE') this.cut((pair) => pair.lost);
    for (const pair of this.pairs) for (const send of pair.held.splice(0)) send();
  }

  /** Cuts what is open and lets nothing in. */
  refuse(): void {
    this.mode = 'REFUSE';
    this.cut();
  }

  /** Nothing arrives any more, in either direction, until it is healed; then all of it does. */
  stall(): void {
    this.mode = 'STALL';
  }

  /** Takes everything and passes on nothing. */
  blackHole(): void {
    this.mode = 'BLACK_HOLE';
  }

  /** Cuts the open connections; new ones are let in. */
  cut(which: (pair: { name: string; lost: boolean }) => boolean = () => true): void {
    for (const pair of [...this.pairs]) if (which(pair)) this.drop(pair);
  }

  /** Says the end of the stream to the clients, and goes on taking what they send. */
  halfClose(): void {
    for (const { client } of this.pairs) client.end();
  }

  /** Points the link at another server; connections to the former one are cut. */
  retarget(port: number): void {
    this.targetPort = port;
    this.cut();
  }

  close(): void {
    this.server.close();
    this.cut();
  }

  private accept(client: Socket): void {
    client.on('error', () => undefined);
    if (this.mode === 'REFUSE') {
      client.resetAndDestroy();
      return;
    }
    const server = connect({ port: this.targetPort, host: '127.0.0.1', noDelay: true, allowHalfOpen: true });
    const pair: Pair = { client, server, name: '', held: [], late: 0, tail: Promise.resolve(), lost: false };
    this.pairs.add(pair);
    server.on('error', () => this.drop(pair));
    server.on('close', () => this.drop(pair));
    client.on('close', () => this.clientLeft(pair));
    client.on('data', (chunk) => {
      this.learnName(pair, chunk);
      this.pass(pair, chunk, server, this.onRequest);
    });
    server.on('data', (chunk) => this.pass(pair, chunk, client, this.onReply));
    client.on('end', () => this.send(pair, () => server.end()));
    server.on('end', () => this.send(pair, () => client.end()));
  }

  /** What a client sent before it went arrives all the same, late, when the link is stalled. */
  private clientLeft(pair: Pair): void {
    if (this.mode === 'STALL') pair.held.push(() => pair.server.end(() => this.drop(pair)));
    else this.drop(pair);
  }

  private learnName(pair: Pair, chunk: Buffer): void {
    if (pair.name !== '' || chunk.length > 4096) return;
    pair.name = /setname\r\n\$\d+\r\n([^\r]+)\r\n/i.exec(chunk.toString('latin1'))?.[1] ?? '';
  }

  private pass(pair: Pair, chunk: Buffer, to: Socket, inspect: Inspector | undefined): void {
    const verdict = this.mode === 'PASS' && inspect !== undefined ? inspect(chunk, pair.name) : 'FORWARD';
    switch (verdict) {
      case 'FORWARD':
        return this.send(pair, () => void to.write(chunk));
      case 'LOSE_AND_CUT':
        return this.drop(pair);
      case 'FORWARD_AND_CUT':
        to.write(chunk, () => this.drop(pair));
    }
  }

  private send(pair: Pair, act: () => void): void {
    if (this.mode === 'BLACK_HOLE') pair.lost = true;
    else if (this.mode === 'STALL' || pair.held.length > 0) pair.held.push(act);
    else if (this.delayMs > 0 || pair.late > 0) this.sendLate(pair, act);
    else act();
  }

  /** Late, but in order, also when the delay ends meanwhile: TCP never lets one piece overtake another. */
  private sendLate(pair: Pair, act: () => void): void {
    const dueMs = performance.now() + this.delayMs;
    pair.late += 1;
    pair.tail = pair.tail.then(async () => {
      const leftMs = dueMs - performance.now();
      if (leftMs > 0) await pause(leftMs);
      pair.late -= 1;
      act();
    });
  }

  private drop(pair: Pair): void {
    if (!this.pairs.delete(pair)) return;
    pair.client.destroy();
    pair.server.destroy();
  }
}
