import { closedLoad } from './load.js';
import { answersWith, type Sample, sampleOf, startCpu } from './measurement.js';
import { drained, forgetSales, openSale, storedOrders, until } from './sale.js';
import type { Stage } from './stage.js';

const CONNECTIONS = 64;
const FIRST_BUYER = 3_000_000_000;
const LOGIN_SECONDS = 1_800;
const PIECE = 5_000;

/** Purchases over hmdp's route, each by a buyer who is logged in as hmdp's load plans prepare it. The worker stands still. */
export async function measureHmdp(stage: Stage, count: number): Promise<Sample> {
  const voucherId = await openSale(stage, count);
  const tokens = Array.from({ length: count }, (_, n) => `bench${String(n).padStart(27, '0')}`);
  await logIn(stage, tokens);
  const requests = tokens.map(
    (token) =>
      `POST /voucher-order/seckill/${voucherId} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: ${token}\r\ncontent-length: 0\r\n\r\n`,
  );
  stage.worker.freeze();
  try {
    const cpu = startCpu(stage, { api: stage.apiPid, redis: stage.redisPid });
    const load = await closedLoad(stage.apiPort, CONNECTIONS, requests);
    const used = cpu();
    const answered = answersWith(200, load, 'hmdp purchases');
    stage.worker.thaw();
    await until('the orders are stored', drained(stage));
    // hmdp's clients hear 200 for refusals too: what was stored tells what was bought.
    const stored = await storedOrders(stage, [voucherId]);
    if (stored < count * 0.99) throw new Error(`${answered} purchases over hmdp's route, ${stored} orders`);
    return sampleOf(stored, load.wallMs, used, load);
  } finally {
    stage.worker.thaw();
    await until('the orders are stored', drained(stage));
    await forgetSales(stage, [voucherId]);
    for (let at = 0; at < count; at += PIECE)
      await stage.redis.unlink(...tokens.slice(at, at + PIECE).map((token) => `login:token:${token}`));
  }
}

async function logIn({ redis }: Stage, tokens: readonly string[]): Promise<void> {
  for (let at = 0; at < tokens.length; at += PIECE) {
    const pipeline = redis.pipeline();
    tokens.slice(at, at + PIECE).forEach((token, n) => {
      pipeline.hset(`login:token:${token}`, 'id', String(FIRST_BUYER + at + n), 'nickName', 'bench', 'icon', '');
      pipeline.expire(`login:token:${token}`, LOGIN_SECONDS);
    });
    await pipeline.exec();
  }
}
