import type { Scenario } from '../runner.js';
import type { Stage } from '../stage.js';
import type { TcpProxy } from '../tcp-proxy.js';
import { until } from '../waiting.js';
import type { LinkedNode } from '../world.js';

/** A call of a script with the group and entry ids: the acknowledgement after a commit. */
export function isAcknowledgement(chunk: Buffer): boolean {
  return /evalsha?\r\n[^]*\r\ng1\r\n\$\d+\r\n\d{13}-\d+\r\n/i.test(chunk.toString('latin1'));
}

/** Entries handed out to a consumer. */
function isDelivery(chunk: Buffer, name: string): boolean {
  return name.startsWith('consumer-') && chunk.includes('voucherId');
}

/** Keeps the workers from the database until so many purchases wait, so that the drain is a long one. */
async function gather(stage: Stage, users = 2000): Promise<void> {
  for (const { database } of stage.world.workers) database.refuse();
  await stage.rush({ users }).done;
}

function letDrain(stage: Stage): void {
  for (const { database } of stage.world.workers) database.heal();
}

/**
 * Kills the first worker on whose link such traffic is seen, before anything goes on, and spares the others. Resolves with it when it has ended.
 */
function killFirst(
  workers: readonly LinkedNode[],
  side: 'onRequest' | 'onReply',
  fits: (chunk: Buffer, name: string) => boolean,
): Promise<LinkedNode> {
  return new Promise((resolve) => {
    for (const worker of workers) {
      worker.redis[side] = (chunk, name) => {
        if (!fits(chunk, name)) return 'FORWARD';
        for (const { redis } of workers) redis[side] = undefined;
        worker.node.signal('SIGKILL');
        void until('the worker has ended', () => !worker.node.isRunning, 10_000).then(() => resolve(worker));
        return 'LOSE_AND_CUT';
      };
    }
  });
}

async function stored(stage: Stage, limitMs: number, what: string, startMs = performance.now()): Promise<void> {
  await stage.drained();
  stage.recoveryMs = Math.round(performance.now() - startMs);
  stage.expect(stage.recoveryMs <= limitMs, `I8 ${what} took ${stage.recoveryMs} ms, the limit is ${limitMs} ms`);
}

/** Counts the cuts of acknowledgements on a link. */
function loseAcknowledgements(link: TcpProxy, most: number): () => number {
  let lost = 0;
  link.onRequest = (chunk) => {
    if (lost >= most || !isAcknowledgement(chunk)) return 'FORWARD';
    lost += 1;
    return 'LOSE_AND_CUT';
  };
  return () => lost;
}

export const consumerScenarios: readonly Scenario[] = [
  {
    id: 'F19',
    title: 'Consumer killed after the COMMIT, before the acknowledgement',
    async run(stage) {
      await gather(stage);
      const killed = killFirst(stage.world.workers, 'onRequest', isAcknowledgement);
      letDrain(stage);
      const { node } = await killed;
      await stored(stage, 20_000, 'the drain after the kill');
      node.up();
      await node.ready('/health/live');
    },
  },
  {
    id: 'F20',
    title: 'Consumer killed after the read, before the COMMIT',
    async run(stage) {
      const killed = killFirst(stage.world.workers, 'onReply', isDelivery);
      const rush = stage.rush();
      const { node } = await killed;
      const killedAtMs = performance.now();
      await rush.done;
      await stored(stage, 30_000, 'the take-over', killedAtMs);
      node.up();
      await node.ready('/health/live');
    },
  },
  {
    id: 'F23',
    title: 'Acknowledgements are lost on the way, again and again',
    async run(stage) {
      await gather(stage);
      const counts = stage.world.workers.map(({ redis }) => loseAcknowledgements(redis, 5));
      letDrain(stage);
      const lost = () => counts.reduce((sum, count) => sum + count(), 0);
      await until('acknowledgements are lost', () => lost() >= 3, 30_000);
      stage.notes.push(`${lost()} lost`);
      for (const { redis } of stage.world.workers) redis.heal();
      await stored(stage, 20_000, 'the drain');
    },
  },
  {
    id: 'F24',
    title: 'Poison entries among the good ones',
    async run(stage) {
      const { redis } = stage.world;
      const state = await stage.reader.sale(stage.sale.voucherId);
      const stream = `stream.orders:{${state.partition}}`;
      const before = (await stage.reader.stream(state.partition)).deadLetters;
      const rush = stage.rush();
      const [stranger, other] = stage.users(2) as [string, string];
      const poison: readonly (readonly string[])[] = [
        ['userId', stranger, 'voucherId', stage.sale.voucherId],
        ['userId', '01', 'voucherId', stage.sale.voucherId, 'id', '4611686018427387904'],
        ['userId', stranger, 'voucherId', '9223372036854775807', 'id', '4611686018427387905'],
        ['nonsense', 'x'.repeat(100_000)],
        ['userId', `${other} `, 'voucherId', stage.sale.voucherId, 'id', '9223372036854775808'],
      ];
      for (let round = 0; round < 4; round += 1) {
        await stage.accepted(20);
        await redis.with(async (client) => {
          const fields = stage.random.pick(poison);
          await client.xadd(stream, '*', ...fields);
        });
      }
      await rush.done;
      await until(
        'the poison entries are dead letters',
        async () => (await stage.reader.stream(state.partition)).deadLetters === before + 4,
        60_000,
      );
      await stage.recovered(10_000);
    },
  },
  {
    id: 'F26',
    title: 'Consumer group destroyed in the middle of the sale',
    async run(stage) {
      const { redis } = stage.world;
      const { partition } = await stage.reader.sale(stage.sale.voucherId);
      const rush = stage.rush();
      for (let round = 0; round < 3; round += 1) {
        await stage.accepted(stage.random.between(20, 100));
        await redis.with((client) => client.xgroup('DESTROY', `stream.orders:{${partition}}`, 'g1'));
      }
      await rush.done;
      await stored(stage, 20_000, 'the drain');
    },
  },
  {
    id: 'F27',
    title: 'Two consumers under one name',
    needs: { workerName: 'the-same-name' },
    async run(stage) {
      await gather(stage);
      letDrain(stage);
      const victim = stage.random.pick(stage.world.workers);
      await until(
        'the drain has begun',
        async () => (await stage.reader.sale(stage.sale.voucherId)).active.length > 0,
        30_000,
      );
      await victim.node.down('SIGKILL');
      victim.node.up();
      await stored(stage, 30_000, 'the drain');
      await victim.node.ready('/health/live');
    },
  },
];
