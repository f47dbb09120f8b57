import type { Scenario } from '../runner.js';
import type { Stage } from '../stage.js';
import { until } from '../../support/waiting.js';
import type { LinkedNode } from '../world.js';

/** Kills the process at the moment when the reply to one of its admission calls arrives: decided, and never answered. */
function killAtAdmissionReply({ node, redis }: LinkedNode): Promise<void> {
  return new Promise((resolve) => {
    redis.onReply = (_chunk, name) => {
      if (name !== 'admission') return 'FORWARD';
      redis.onReply = undefined;
      node.signal('SIGKILL');
      void until('the API process has ended', () => !node.isRunning, 10_000).then(() => resolve());
      return 'LOSE_AND_CUT';
    };
  });
}

async function restart(stage: Stage, { node }: LinkedNode): Promise<void> {
  node.up();
  await node.ready();
  await stage.recovered(30_000);
}

/** Stops the process properly and holds it to exit code 0 in time. */
async function endProperly(stage: Stage, { node }: LinkedNode): Promise<void> {
  node.signal('SIGTERM');
  await until(`${node.name} ends by itself`, () => !node.isRunning, 15_000);
  stage.expect(node.exitCode === 0, `${node.name} ended with code ${node.exitCode}`);
}

export const apiScenarios: readonly Scenario[] = [
  {
    id: 'F1',
    title: 'API killed between the script reply and the HTTP reply',
    async run(stage) {
      const api = stage.random.pick(stage.world.apis);
      const rush = stage.rush();
      await stage.accepted(stage.random.between(30, 250));
      await killAtAdmissionReply(api);
      await restart(stage, api);
      await rush.done;
      const unanswered = stage.history.count(({ code }) => code === 'NO_ANSWER');
      stage.expect(unanswered > 0, 'the kill hit no call: nobody was left without an answer');
    },
  },
  {
    id: 'F2',
    title: 'API gets SIGTERM in the middle of a burst',
    async run(stage) {
      const api = stage.random.pick(stage.world.apis);
      const rush = stage.rush();
      await stage.accepted(stage.random.between(30, 250));
      await endProperly(stage, api);
      await restart(stage, api);
      await rush.done;
    },
  },
  {
    id: 'F3',
    title: 'Half of the clients drop their connection right after sending',
    async run(stage) {
      await stage.rush({ dropShare: 0.5 }).done;
      await stage.recovered(10_000);
    },
  },
  {
    id: 'F4',
    title: 'A write in the middle of the admission script is refused (right withdrawn), then allowed again',
    async run(stage) {
      const { redis } = stage.world;
      const rush = stage.rush({ tries: 20 });
      for (const command of ['hset', 'decrby']) {
        await stage.accepted(stage.random.between(20, 100));
        await redis.with((client) => client.call('ACL', 'SETUSER', 'default', `-${command}`));
        await stage.heard(50, ({ code }) => code === 'UNAVAILABLE', 'purchases that hear UNAVAILABLE');
        await redis.with((client) => client.call('ACL', 'SETUSER', 'default', `+${command}`));
      }
      await stage.recovered(20_000);
      await rush.done;
    },
  },
  {
    id: 'F10',
    title: 'API process frozen for 3 s with purchases in hand',
    async run(stage) {
      const { node } = stage.random.pick(stage.world.apis);
      const rush = stage.rush();
      await stage.accepted(stage.random.between(30, 250));
      node.signal('SIGSTOP');
      await stage.lasts(3000);
      node.signal('SIGCONT');
      await stage.recovered(10_000);
      await rush.done;
    },
  },
  {
    id: 'F35',
    title: 'Stock raised and lowered during the rush, Redis killed in between; each change repeated with its key',
    async run(stage) {
      const { sale, world } = stage;
      const rush = stage.rush();
      await stage.accepted(stage.random.between(30, 150));
      const changes = [60, -40, 25].map((delta, nth) => changeStock(stage, delta, `${sale.voucherId}-${nth}`));
      await world.redis.down('SIGKILL');
      await world.redis.up();
      await stage.recovered(20_000);
      const made = (await Promise.all(changes)).reduce((sum, delta) => sum + delta, 0);
      await rush.done;
      const { units } = await stage.reader.sale(sale.voucherId);
      stage.notes.push(`units ${sale.units} to ${units}`);
      stage.expect(units === sale.units + made, `units are ${units}; the changes that were answered add up to ${made}`);
    },
  },
  {
    id: 'F40',
    title: 'Every process restarted in turn under load',
    async run(stage) {
      const rush = stage.rush({ tries: 40 });
      await stage.accepted(20);
      for (const linked of stage.world.nodes) {
        await endProperly(stage, linked);
        linked.node.up();
        await linked.node.ready(stage.world.apis.includes(linked) ? '/health/ready' : '/health/live');
      }
      await stage.recovered(10_000);
      await rush.done;
    },
  },
];

/** Changes the units, asking again with the same key until there is an answer. Answers what was changed: `delta`, or 0 where it was refused. */
async function changeStock(stage: Stage, delta: number, key: string): Promise<number> {
  const path = `/v1/vouchers/${stage.sale.voucherId}/stock`;
  return until(
    `the stock is changed by ${delta}`,
    async () => {
      const answer = await stage.call('PATCH', path, { body: { delta }, headers: { 'idempotency-key': key } });
      if (answer.status === 200) return [delta];
      if (answer.status === 409 && answer.body['code'] === 'INSUFFICIENT_UNITS') return [0];
      throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`);
    },
    60_000,
    200,
  ).then(([changed = 0]) => changed);
}
