import type { Scenario } from '../runner.js';
import { until } from '../waiting.js';
import type { LinkedNode } from '../world.js';
import type { Stage } from '../stage.js';

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
      stage.expect(
        stage.history.count(({ code }) => code === 'NO_ANSWER') > 0,
        'the kill hit no call: nobody was left without an answer',
      );
    },
  },
  {
    id: 'F2',
    title: 'API gets SIGTERM in the middle of a burst',
    async run(stage) {
      const api = stage.random.pick(stage.world.apis);
      const rush = stage.rush();
      await stage.accepted(stage.random.between(30, 250));
      api.node.signal('SIGTERM');
      await until('the API process ends by itself', () => !api.node.isRunning, 15_000);
      stage.expect(api.node.exitCode === 0, `it ended with code ${api.node.exitCode}`);
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
];
