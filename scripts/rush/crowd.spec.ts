import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { Crowd, heardIn, isPassing } from './crowd.js';

const running: Server[] = [];
const never = new AbortController().signal;

/** A service that answers each purchase as `answer` says; `token` of a buyer is his place. */
async function serve(
  answer: (buyer: number, response: ServerResponse, request: IncomingMessage) => void,
): Promise<string> {
  const server = createServer((request, response) => {
    answer(Number(/^Bearer (\d+)$/.exec(request.headers.authorization ?? '')?.[1]), response, request);
  });
  running.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const say = (response: ServerResponse, status: number, body: object): void => {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
};

const crowdAt = (urls: string[], sizes: Partial<ConstructorParameters<typeof Crowd>[1]>): Crowd =>
  new Crowd(
    { urls, voucherId: '17', token: String },
    { buyers: 50, connections: 4, rate: undefined, tries: 5, ...sizes },
  );

afterEach(async () => {
  for (const server of running.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

describe('Crowd', () => {
  it('sends each buyer once, over all services, and keeps what each heard', async () => {
    const seen: number[][] = [[], []];
    const urls = await Promise.all(
      seen.map((buyers) =>
        serve((buyer, response, request) => {
          expect(request.method + (request.url ?? '')).toBe('POST/v1/vouchers/17/orders');
          buyers.push(buyer);
          if (buyer % 5 === 0) say(response, 202, { orderId: String(1_000 + buyer), status: 'QUEUED' });
          else say(response, 409, { code: 'SOLD_OUT' });
        }),
      ),
    );
    const crowd = crowdAt(urls, {});
    await crowd.run(never);
    crowd.close();
    expect(seen.flat().sort((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, buyer) => buyer));
    expect(seen.every((buyers) => buyers.length > 0)).toBe(true);
    expect([crowd.sent, crowd.accepted, crowd.latency.count]).toEqual([50, 10, 50]);
    expect(crowd.heard[5]).toEqual({ code: 'QUEUED', orderId: '1005' });
    expect(Object.fromEntries(crowd.answers)).toEqual({ QUEUED: 10, SOLD_OUT: 40 });
  });

  it('tries again while the answer is 503 or none, and counts an order found that way as bought', async () => {
    const tries = new Map<number, number>();
    const url = await serve((buyer, response, request) => {
      const nth = (tries.get(buyer) ?? 0) + 1;
      tries.set(buyer, nth);
      if (nth > 1) say(response, 409, { code: 'DUPLICATE_ORDER', orderId: String(buyer) });
      else if (buyer === 0) say(response, 503, { code: 'OUTCOME_UNKNOWN', candidateOrderId: '0' });
      else if (buyer === 1) request.socket.destroy();
      else say(response, 503, { code: 'UNAVAILABLE' });
    });
    const crowd = crowdAt([url], { buyers: 3, connections: 3 });
    await crowd.run(never);
    crowd.close();
    // Buyer 2 was refused before any effect: the order that he is then told of is not one that this rush bought.
    expect(crowd.heard.map((heard) => heard?.code)).toEqual(['QUEUED', 'QUEUED', 'DUPLICATE_ORDER']);
    expect([crowd.accepted, crowd.sent]).toEqual([2, 6]);
  });

  it('gives up after the tries that were asked for', async () => {
    const url = await serve((_, response) => say(response, 503, { code: 'UNAVAILABLE' }));
    const crowd = crowdAt([url], { buyers: 2, tries: 2 });
    await crowd.run(never);
    crowd.close();
    expect([crowd.sent, crowd.accepted, crowd.heard[0]?.code]).toEqual([4, 0, 'UNAVAILABLE']);
  });

  it('open load: latency counts from the intended time, so a stalled service shows in every purchase behind it', async () => {
    const held: ServerResponse[] = [];
    const url = await serve((buyer, response) => {
      if (buyer === 0) held.push(response);
      else say(response, 409, { code: 'SOLD_OUT' });
      if (held.length > 0 && held[0] === response) setTimeout(() => say(response, 409, { code: 'SOLD_OUT' }), 200);
    });
    // One connection, all 20 purchases due within 20 ms, the first one takes 200 ms: measured from the sending the others would take no time.
    const crowd = crowdAt([url], { buyers: 20, connections: 1, rate: 1_000 });
    await crowd.run(never);
    crowd.close();
    expect(crowd.waited).toBeGreaterThan(0);
    expect(crowd.latency.quantileUs(0.5)).toBeGreaterThan(100_000);
  });

  it('stops soon when it is told to', async () => {
    const stop = new AbortController();
    const url = await serve((buyer) => {
      if (buyer === 0) stop.abort();
    });
    const crowd = crowdAt([url], { connections: 2 });
    await crowd.run(stop.signal);
    expect(crowd.sent).toBeLessThan(50);
  });
});

describe('what an answer says', () => {
  it('is the status of the order, or the code of the problem, or the bare status', () => {
    expect(heardIn({ status: 202, body: '{"orderId":"5","status":"QUEUED"}' })).toEqual({
      code: 'QUEUED',
      orderId: '5',
    });
    expect(heardIn({ status: 409, body: '{"code":"SOLD_OUT"}' })).toEqual({ code: 'SOLD_OUT', orderId: undefined });
    expect(heardIn({ status: 502, body: '<html>' })).toEqual({ code: 'HTTP 502', orderId: undefined });
    expect(isPassing('OUTCOME_UNKNOWN')).toBe(true);
    expect(isPassing('SOLD_OUT')).toBe(false);
  });
});
