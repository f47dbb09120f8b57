import { NestFactory } from '@nestjs/core';
import { ConfigModule, readSettings } from '#config';
import { RedisConnections } from '#redis';
import { SaleRegister, SaleRegisterModule } from '#sale-register';
import { type Sample, sampleOf, startCpu } from './measurement.js';
import { drained, forgetSales, openSale, storedOrders, STREAM, until } from './sale.js';
import { PEER_SCHEMA, type Stage } from './stage.js';

/** What the product's consumer takes at once, and what the raw insert takes: the default of CONSUMER_BATCH_SIZE. */
export const BATCH_SIZE = 1_000;
const FIRST_ORDER_ID = 600_000_000_000_000_000n;

interface QueuedOrder {
  readonly voucherId: string;
  readonly userId: string;
  readonly orderId: string;
}

function ordersOf(voucherId: string, count: number): QueuedOrder[] {
  return Array.from({ length: count }, (_, n) => ({
    voucherId,
    userId: String(5_000_000_000 + n),
    orderId: String(FIRST_ORDER_ID + BigInt(n)),
  }));
}

class RegisterModule {}

/** Accepts the orders at the register itself, in calls of a thousand: the same script, without HTTP. */
async function queueOrders(stage: Stage, orders: readonly QueuedOrder[]): Promise<void> {
  const { redisUrl, databaseUrl } = stage;
  const read = readSettings({ REDIS_URL: redisUrl, DATABASE_URL: databaseUrl }, { authRequired: false });
  if (!read.ok) throw new Error(read.problems.join('\n'));
  const context = await NestFactory.createApplicationContext(
    { module: RegisterModule, imports: [ConfigModule.forRoot(read.settings), SaleRegisterModule] },
    { logger: false, abortOnError: false },
  );
  try {
    await context.get(RedisConnections, { strict: false }).whenReady(10_000);
    const register = context.get(SaleRegister, { strict: false });
    for (let at = 0; at < orders.length; at += BATCH_SIZE) {
      const outcomes = await register.admit(0, orders.slice(at, at + BATCH_SIZE), 10_000);
      const refused = outcomes.find(({ kind }) => kind !== 'ACCEPTED');
      if (refused !== undefined) throw new Error(`a queued order was answered ${refused.kind}`);
    }
  } finally {
    await context.close();
  }
}

/**
 * The product's worker storing a queue, from the first order that is stored and acknowledged to the last. `bytesPerBuyer`: what Redis holds of a
 * buyer afterwards, entries trimmed.
 */
export async function measureDrain(stage: Stage, count: number): Promise<Sample & { readonly bytesPerBuyer: number }> {
  const voucherId = await openSale(stage, count);
  const bytesBefore = await dataBytes(stage);
  stage.worker.freeze();
  try {
    await queueOrders(stage, ordersOf(voucherId, count));
  } finally {
    stage.worker.thaw();
  }
  const watched = { worker: stage.worker.pid, redis: stage.redisPid, postgres: stage.postgresPid };
  let cpu = startCpu(stage, watched);
  let startMs = performance.now();
  let left = count;
  await until('the first order is stored', async () => (left = await stage.redis.xlen(STREAM)) < count);
  if (left > 0) {
    cpu = startCpu(stage, watched);
    startMs = performance.now();
    await until('the queue is empty', drained(stage));
  } else {
    // A short queue is empty at the first look: then the whole of it counts, the waking up of the worker too.
    left = count;
  }
  const wallMs = performance.now() - startMs;
  const used = cpu();
  const stored = await storedOrders(stage, [voucherId]);
  if (stored !== count) throw new Error(`${count} orders were queued, ${stored} are stored`);
  const bytesPerBuyer = ((await dataBytes(stage)) - bytesBefore) / count;
  await forgetSales(stage, [voucherId]);
  return { ...sampleOf(left, wallMs, used), bytesPerBuyer };
}

/** What Redis holds, without what its clients and its log buffer need at the moment. */
async function dataBytes({ redis }: Stage): Promise<number> {
  const memory = await redis.info('memory');
  const fact = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(memory)?.[1] ?? 0);
  return fact('used_memory') - fact('mem_clients_normal') - fact('mem_aof_buffer');
}

/** The same rows into a table with the same columns and indexes, by one prepared statement after another. */
export async function measureRawInsert(stage: Stage, count: number): Promise<Sample> {
  await stage.sql.query(`TRUNCATE ${PEER_SCHEMA}.raw_order`);
  const orders = ordersOf('1', count);
  const statement = {
    name: 'raw_insert',
    text: `INSERT INTO ${PEER_SCHEMA}.raw_order (id, user_id, voucher_id, create_time)
      SELECT id, user_id, voucher_id, to_timestamp(accepted_ms / 1000)
      FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::float8[]) AS o (id, user_id, voucher_id, accepted_ms)`,
  };
  const cpu = startCpu(stage, { postgres: stage.postgresPid });
  const startMs = performance.now();
  for (let at = 0; at < count; at += BATCH_SIZE) {
    const batch = orders.slice(at, at + BATCH_SIZE);
    const nowMs = Date.now();
    await stage.sql.query({
      ...statement,
      values: [
        batch.map(({ orderId }) => orderId),
        batch.map(({ userId }) => userId),
        batch.map(({ voucherId }) => voucherId),
        batch.map(() => nowMs),
      ],
    });
  }
  const wallMs = performance.now() - startMs;
  const used = cpu();
  await stage.sql.query(`TRUNCATE ${PEER_SCHEMA}.raw_order`);
  return sampleOf(count, wallMs, used);
}
