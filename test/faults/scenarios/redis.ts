import type { Scenario } from '../runner.js';
import type { Stage } from '../stage.js';

/** The sale is closed: a purchase hears UNAVAILABLE, or the partition's epoch is not the server's. */
async function closedByEpoch(stage: Stage): Promise<void> {
  await stage.heard(1, ({ code }) => code === 'UNAVAILABLE', 'purchases that hear UNAVAILABLE');
}

export const redisScenarios: readonly Scenario[] = [
  {
    id: 'F5',
    title: 'Redis killed at full load and restarted (appendfsync always)',
    async run(stage) {
      const { redis } = stage.world;
      const rush = stage.rush();
      await stage.accepted(stage.random.between(30, 250));
      await redis.down('SIGKILL');
      await redis.up();
      await stage.recovered(15_000);
      await rush.done;
    },
  },
  {
    id: 'F15',
    title: 'Redis emptied in the middle of the sale',
    async run(stage) {
      const { redis } = stage.world;
      const rush = stage.rush();
      await stage.accepted(stage.random.between(30, 250));
      if (stage.random.chance(0.5)) {
        stage.notes.push('FLUSHALL');
        await redis.with((client) => client.flushall());
      } else {
        stage.notes.push('restarted empty');
        await redis.down('SIGKILL');
        redis.forget();
        await redis.up();
      }
      stage.mayLoseSentUntilNow();
      await closedByEpoch(stage);
      await stage.recovered(20_000);
      await rush.done;
    },
  },
  {
    id: 'F16',
    title: 'SCRIPT FLUSH, again and again, under load',
    async run(stage) {
      const { redis } = stage.world;
      const rush = stage.rush();
      for (let flushed = 0; flushed < 5; flushed += 1) {
        await stage.accepted(stage.random.between(10, 60));
        await redis.with((client) => client.script('FLUSH'));
      }
      await stage.recovered(10_000);
      await rush.done;
      const unavailable = stage.history.count(({ code }) => code === 'UNAVAILABLE' || code === 'OUTCOME_UNKNOWN');
      stage.expect(unavailable === 0, `the reload was not transparent: ${unavailable} calls heard 503`);
    },
  },
];
