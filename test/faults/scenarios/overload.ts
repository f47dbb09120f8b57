import { connect, type Socket } from 'node:net';
import type { Scenario } from '../runner.js';
import { signToken } from '../../../scripts/services/signed-token.mjs';
import { purchaseText, tokenOf } from '../crowd.js';
import { learn } from '../history.js';
import { HttpConnection } from '../http-client.js';
import type { Stage } from '../stage.js';
import { until } from '../../support/waiting.js';
import { FAULT_SECRET } from '../world.js';

const IDLE_SOCKETS = 1500;
const SLOW_SOCKETS = 200;

/** Opens connections that send so much and then nothing. */
async function openSockets(ports: readonly number[], count: number, text: string): Promise<Socket[]> {
  const sockets: Socket[] = [];
  for (let nth = 0; nth < count; nth += 1) {
    // Several loopback addresses, so that the ports of one are not used up.
    const localAddress = `127.0.0.${2 + (nth % 8)}`;
    const socket = connect({ port: ports[nth % ports.length] as number, host: '127.0.0.1', localAddress });
    socket.on('error', () => undefined);
    socket.on('connect', () => socket.write(text));
    sockets.push(socket);
  }
  await until('the connections stand', () => sockets.every((socket) => !socket.connecting), 30_000);
  return sockets;
}

/** Resolves when the processes have let go of what the sockets held. */
async function closeSockets(stage: Stage, sockets: readonly Socket[]): Promise<void> {
  for (const socket of sockets) socket.destroy();
  await until(
    'the handles are given back',
    () => stage.world.apis.every(({ node }) => (node.footprint()?.handles ?? 0) < 180),
    30_000,
  );
}

/** A JSON body of a megabyte, as an administrator. */
async function postLargeBody(stage: Stage): Promise<void> {
  const answer = await stage.call('POST', '/v1/vouchers', { body: { title: 'x'.repeat(1024 * 1024) } });
  stage.expect(answer.status === 413, `a body of 1 MB was answered ${answer.status}`);
}

function unsigned(claims: object): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${encode({ alg: 'none', typ: 'JWT' })}.${encode(claims)}.`;
}

async function refusedTokens(stage: Stage): Promise<void> {
  const path = `/v1/vouchers/${stage.sale.voucherId}/orders`;
  const [user] = stage.users(1) as [string];
  const exp = Math.floor(Date.now() / 1000) + 3600;
  const tokens = {
    unsigned: unsigned({ sub: user, exp }),
    'of another secret': signToken({ secret: 'another secret, which is as long as it must be', user }),
    expired: signToken({ secret: FAULT_SECRET, user, nowMs: Date.now() - 48 * 3_600_000 }),
    cut: tokenOf(user).slice(0, -3),
  };
  for (const [kind, token] of Object.entries(tokens)) {
    const answer = await stage.call('POST', path, { token });
    stage.expect(answer.status === 401, `a token that is ${kind} was answered ${answer.status}`);
  }
  const state = await stage.reader.sale(stage.sale.voucherId);
  stage.expect(!state.marks.has(user), 'a purchase with a forged token had an effect');
}

export const overloadScenarios: readonly Scenario[] = [
  {
    id: 'F37',
    title: 'Retry storm: every 10 ms, through 5 s without Redis; then the rate returns',
    needs: { settings: { MAX_IN_FLIGHT: '100' } },
    async run(stage) {
      const { redis } = stage.world;
      const before = await stage.rate(3);
      const rush = stage.rush({ inFlight: 400, tries: 2000, tryPauseMs: 10 });
      await stage.accepted(stage.random.between(30, 250));
      redis.freeze();
      await stage.lasts(5000);
      redis.thaw();
      await stage.recovered(20_000);
      await rush.done;
      const after = await stage.rate(5, 0.8 * before);
      stage.notes.push(`${before}/s before, ${after}/s after`);
      stage.expect(after >= 0.8 * before, `I8 the rate was ${before}/s and is ${after}/s`);
      const shed = stage.history.count(({ code }) => code === 'OVERLOADED');
      stage.expect(shed > 0, 'nothing was shed at MAX_IN_FLIGHT');
    },
  },
  {
    id: 'F38',
    title: 'Overload with idle and slow connections and large bodies',
    async run(stage) {
      const ports = stage.world.apis.map(({ node }) => node.port);
      const sockets = await openSockets(ports, IDLE_SOCKETS, '');
      const slow = `POST /v1/vouchers/${stage.sale.voucherId}/orders HTTP/1.1\r\nhost: slow\r\ncontent-length: 100\r\n`;
      sockets.push(...(await openSockets(ports, SLOW_SOCKETS, slow)));
      const rush = stage.rush({ inFlight: 1000, users: 5000 });
      for (let nth = 0; nth < 10; nth += 1) await postLargeBody(stage);
      await rush.done;
      await stage.recovered(15_000);
      const took = stage.history.calls.flatMap(({ knowledge, tookMs }) => (knowledge === 'ACCEPTED' ? [tookMs] : []));
      const p99 = Math.round(took.sort((a, b) => a - b)[Math.floor(took.length * 0.99)] ?? 0);
      stage.notes.push(`p99 of accepted purchases ${p99} ms`);
      stage.expect(p99 <= 5000, `accepted purchases took ${p99} ms (p99)`);
      await closeSockets(stage, sockets);
    },
  },
  {
    id: 'F39',
    title: 'One token from 100 sockets at once; forged tokens; orders of others',
    async run(stage) {
      const { world, sale } = stage;
      const rush = stage.rush();
      const [user, stranger] = stage.users(2) as [string, string];
      const text = purchaseText(sale.voucherId, tokenOf(user));
      const answers = await Promise.all(
        Array.from({ length: 100 }, async (_, nth) => {
          const connection = new HttpConnection(world.apis[nth % world.apis.length]?.node.port ?? 0, 15_000);
          const { status, body } = await connection.request(text);
          connection.close();
          stage.history.record({
            ...learn({ status, body }),
            voucherId: sale.voucherId,
            userId: user,
            sentAtMs: 0,
            tookMs: 0,
          });
          const { orderId } = JSON.parse(body) as { orderId?: string };
          return { status, orderId };
        }),
      );
      const ids = new Set(answers.flatMap(({ orderId }) => (orderId === undefined ? [] : [orderId])));
      const accepted = answers.filter(({ status }) => status === 202).length;
      stage.expect(ids.size === 1 && accepted === 1, `100 clicks: ${accepted} accepted, ${ids.size} orders named`);
      const [orderId] = [...ids] as [string];
      const path = `/v1/vouchers/${sale.voucherId}/orders/${orderId}`;
      const foreign = await stage.call('GET', path, { token: tokenOf(stranger) });
      stage.expect(foreign.status === 404, `the order of another buyer was answered ${foreign.status}`);
      await refusedTokens(stage);
      const unknown = await stage.call('POST', '/v1/vouchers/4611686018427387904/orders', { token: tokenOf(stranger) });
      stage.expect(unknown.status === 404, `an unknown voucher was answered ${unknown.status}`);
      const keys = await world.redis.with((redis) => redis.keys('*4611686018427387904*'));
      stage.expect(keys.length === 0, `keys were made for an unknown voucher: ${keys.join(', ')}`);
      await rush.done;
      await stage.recovered(10_000);
    },
  },
];
