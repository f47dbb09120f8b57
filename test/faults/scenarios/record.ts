import type { Redis } from 'ioredis';
import type { Scenario } from '../runner.js';
import type { Stage } from '../stage.js';
import { until } from '../../support/waiting.js';
import { drainMeasured } from './drain.js';

/** The database refuses every order of these buyers for good, until `end` is called. */
async function refuseBuyers(stage: Stage, users: readonly string[]): Promise<{ end: () => Promise<unknown> }> {
  const { postgres } = stage.world;
  await postgres.query(`
    CREATE OR REPLACE FUNCTION fault_refusal() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'refused for the test' USING ERRCODE = '23514'; END $$;
    CREATE TRIGGER fault_refusal BEFORE INSERT ON tb_voucher_order FOR EACH ROW
      WHEN (NEW.status = 1 AND NEW.user_id IN (${users.join(', ')})) EXECUTE FUNCTION fault_refusal()`);
  return { end: () => postgres.query('DROP TRIGGER fault_refusal ON tb_voucher_order') };
}

/** Appends every order that answers have named to the stream once more, in random order. */
async function replayAll(stage: Stage): Promise<number> {
  const { voucherId } = stage.sale;
  const told = new Map<string, string>();
  for (const { orderId, userId } of stage.history.of(voucherId)) if (orderId !== undefined) told.set(orderId, userId);
  const orders = [...told];
  for (let at = orders.length - 1; at > 0; at -= 1) {
    const other = stage.random.between(0, at);
    [orders[at], orders[other]] = [orders[other] as [string, string], orders[at] as [string, string]];
  }
  await stage.world.redis.with(async (redis) => {
    for (const [id, userId] of orders) await append(redis, stage, userId, id);
  });
  return orders.length;
}

function append(redis: Redis, stage: Stage, userId: string, id: string): Promise<unknown> {
  const { partition, voucherId } = stage.sale;
  return redis.xadd(`stream.orders:{${partition}}`, '*', 'userId', userId, 'voucherId', voucherId, 'id', id);
}

interface Moved {
  readonly letter: string;
  readonly userId: string;
  readonly id: string;
}

/** Moves so many undelivered entries of the sale into the dead letters, as an operator's hand or an older release might have. */
function moveToDeadLetters(stage: Stage, count: number): Promise<Moved[]> {
  const { partition, voucherId } = stage.sale;
  return stage.world.redis.with(async (redis) => {
    const moved: Moved[] = [];
    for (const [entryId, flat] of await redis.xrange(`stream.orders:{${partition}}`, '-', '+')) {
      const [, userId = '', , voucher, , id = ''] = flat;
      if (voucher !== voucherId || moved.length >= count) continue;
      const fields = JSON.stringify({ userId, voucherId, id });
      const letter = [
        'cause',
        'moved by hand',
        'entryId',
        entryId,
        'deliveries',
        '1',
        'firstSeenMs',
        '1',
        'fields',
        fields,
      ];
      const key = await redis.xadd(`stream.orders.dead:{${partition}}`, '*', ...letter);
      await redis.xdel(`stream.orders:{${partition}}`, entryId);
      moved.push({ letter: `${partition}-${key}`, userId, id });
    }
    return moved;
  });
}

/** Asks until the answer is not 503. */
async function settleLetter(stage: Stage, letter: string, act: 'redrive' | 'discard', api: number): Promise<void> {
  await until(
    `${act} of ${letter}`,
    async () => {
      const answer = await stage.call('POST', `/v1/admin/dead-letters/${letter}/${act}`, { api });
      if (answer.status >= 500 && answer.status !== 503)
        stage.expect(false, `${act} was answered ${answer.status} ${JSON.stringify(answer.body)}`);
      return answer.status !== 503;
    },
    30_000,
    100,
  );
}

export const recordScenarios: readonly Scenario[] = [
  {
    id: 'F25',
    title: 'The whole stream appended again, with orders whose buyers were rejected and bought again',
    async run(stage) {
      const { sale } = stage;
      sale.expected = { ...sale.expected, mayReject: true };
      const users = stage.users(10);
      const refusal = await refuseBuyers(stage, users);
      await stage.rush({ users: users.length, fresh: users, inFlight: 4 }).done;
      await until(
        'their orders are rejected and released',
        async () => {
          const { inactive, marks } = await stage.reader.sale(sale.voucherId);
          return inactive.length === users.length && marks.size === 0;
        },
        60_000,
      );
      await refusal.end();
      await stage.rush({ users: users.length, fresh: users, inFlight: 4 }).done;
      await stage.rush().done;
      await stage.drained();
      stage.notes.push(`${await replayAll(stage)} entries again`);
      await drainMeasured(stage, 30_000, 'the drain of the replay');
    },
  },
  {
    id: 'F41',
    title: 'Batch in hand while Redis loses all and sells out anew',
    async run(stage) {
      const { world } = stage;
      // Whoever reads a batch is kept from storing it, until its statements arrive late.
      for (const { database } of world.workers) database.stall();
      await stage.rush({ users: 300 }).done;
      for (const { node } of world.workers) node.signal('SIGSTOP');
      await world.redis.with((redis) => redis.flushall());
      stage.mayLoseSentUntilNow();
      await stage.recovered(30_000);
      await stage.rush({ tries: 20 }).done;
      for (const { database, node } of world.workers) {
        node.signal('SIGCONT');
        database.heal();
      }
      await drainMeasured(stage, 30_000, 'the drain');
    },
  },
  {
    id: 'F42',
    title: 'Dead letters redriven and discarded at once from both processes, then replayed',
    async run(stage) {
      const { world, sale } = stage;
      sale.expected = { ...sale.expected, mayReject: true };
      for (const { node } of world.workers) node.signal('SIGSTOP');
      await stage.rush({ users: 400 }).done;
      const moved = await moveToDeadLetters(stage, 40);
      for (const { node } of world.workers) node.signal('SIGCONT');
      await Promise.all(
        moved.flatMap(({ letter }) => {
          const acts = Array.from({ length: 3 }, () => stage.random.pick(['redrive', 'discard'] as const));
          return acts.map((act, nth) => settleLetter(stage, letter, act, nth % world.apis.length));
        }),
      );
      await stage.drained();
      const { inactive } = await stage.reader.sale(sale.voucherId);
      stage.notes.push(`${moved.length} letters, ${inactive.length} discarded`);
      await world.redis.with(async (redis) => {
        for (const { userId, id } of moved) await append(redis, stage, userId, id);
      });
      await drainMeasured(stage, 30_000, 'the drain of the replay');
      await stage.rush().done;
    },
  },
  {
    id: 'F45',
    title: 'Redis offers more units than the database has',
    async run(stage) {
      const { world, sale } = stage;
      sale.expected = { ...sale.expected, mayReject: true };
      await world.redis.with(async (redis) => {
        await redis.incrby(`seckill:stock:{${sale.partition}}:${sale.voucherId}`, 40);
        await redis.hincrby(`seckill:sale:{${sale.partition}}:${sale.voucherId}`, 'units', 40);
      });
      await stage.rush().done;
      await until(
        'the surplus is rejected',
        async () => {
          const { inactive, active, units } = await stage.reader.sale(sale.voucherId);
          return inactive.length >= 40 || active.length > units;
        },
        60_000,
      );
      await until(
        'the voucher is rebuilt',
        async () => (await stage.call('POST', `/v1/admin/vouchers/${sale.voucherId}/rebuild`)).status === 200,
        30_000,
        200,
      );
      await stage.recovered(10_000);
    },
  },
];
