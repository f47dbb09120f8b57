import type { Scenario } from '../runner.js';
import type { TcpProxy } from '../tcp-proxy.js';
import { until } from '../../support/waiting.js';
import type { LinkedNode } from '../world.js';
import { drainMeasured, gather, letDrain } from './drain.js';

/** A call of a script with the group and entry ids: the acknowledgement after a commit. */
export function isAcknowledgement(chunk: Buffer): boolean {
  return /evalsha?\r\n[^]*\r\ng1\r\n\$\d+\r\n\d{13}-\d+\r\n/i.test(chunk.toString('latin1'));
}

/** Entries handed out to a consumer. */
function isDelivery(chunk: Buffer, name: string): boolean {
  return name.startsWith('consumer-') && chunk.includes('voucherId');
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

/** Freezes the first worker that is handed entries, and lets them reach it. Resolves with it. */
function freezeFirst(workers: readonly LinkedNode[]): Promise<LinkedNode> {
  return new Promise((resolve) => {
    for (const worker of workers) {
      worker.redis.onReply = (chunk, name) => {
        if (!isDelivery(chunk, name)) return 'FORWARD';
        for (const { redis } of workers) redis.onReply = undefined;
        worker.node.signal('SIGSTOP');
        resolve(worker);
        return 'FORWARD';
      };
    }
  });
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
      await drainMeasured(stage, 20_000, 'the drain after the kill');
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
      await drainMeasured(stage, 30_000, 'the take-over', killedAtMs);
      node.up();
      await node.ready('/health/live');
    },
  },
  {
    id: 'F21',
    title: 'Consumer frozen with a batch in hand until others took it over, then thawed',
    async run(stage) {
      await gather(stage);
      const frozen = freezeFirst(stage.world.workers);
      letDrain(stage);
      const { node } = await frozen;
      const frozenAtMs = performance.now();
      await drainMeasured(stage, 30_000, 'the take-over', frozenAtMs);
      node.signal('SIGCONT');
      await node.ready('/health/orders', 30_000);
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
      await drainMeasured(stage, 20_000, 'the drain');
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
      const rush = stage.rush({ thinkMs: 200 });
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
      const rush = stage.rush({ thinkMs: 200 });
      for (let round = 0; round < 3; round += 1) {
        await stage.accepted(stage.random.between(20, 100));
        await redis.with((client) => client.xgroup('DESTROY', `stream.orders:{${partition}}`, 'g1'));
      }
      await rush.done;
      await drainMeasured(stage, 20_000, 'the drain');
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
      await stage.begunToStore();
      await victim.node.down('SIGKILL');
      victim.node.up();
      await drainMeasured(stage, 30_000, 'the drain');
      await victim.node.ready('/health/live');
    },
  },
];
