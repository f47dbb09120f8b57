import type { Scenario } from '../runner.js';
import { drainMeasured } from './drain.js';

const needs = { replica: true, settings: { ADMISSION_DURABILITY: 'replica' } };

export const replicaScenarios: readonly Scenario[] = [
  {
    id: 'F11',
    title: 'Replica frozen for 2 s, primary killed, replica promoted (ADMISSION_DURABILITY=replica)',
    needs,
    spoilsWorld: true,
    async run(stage) {
      const { world } = stage;
      // Nobody carries orders into the database meanwhile: what Redis loses is lost.
      for (const { node } of world.workers) node.signal('SIGSTOP');
      const rush = stage.rush({ tries: 30, thinkMs: 200 });
      await stage.accepted(stage.random.between(30, 150));
      world.replica?.freeze();
      // What is under way to the frozen replica is lost with the primary's machine.
      world.replicaLink?.blackHole();
      await stage.lasts(2000);
      await world.redis.down('SIGKILL');
      world.replica?.thaw();
      await world.promoteReplica();
      for (const { node } of world.workers) node.signal('SIGCONT');
      await world.addReplica();
      await stage.recovered(30_000);
      await rush.done;
    },
  },
  {
    id: 'F13',
    title: 'No replica confirms (ADMISSION_DURABILITY=replica)',
    needs,
    async run(stage) {
      const { world, random } = stage;
      const rush = stage.rush({ tries: 10 });
      await stage.accepted(random.between(30, 150));
      await world.replica?.down('SIGKILL');
      await stage.heard(5, ({ code }) => code === 'OUTCOME_UNKNOWN', 'purchases that are not confirmed');
      const before = stage.history.calls.length;
      await stage.heard(20, () => true, 'answers without a replica');
      const accepted = stage.history.calls.slice(before).filter(({ knowledge }) => knowledge === 'ACCEPTED');
      stage.expect(accepted.length === 0, `${accepted.length} purchases were accepted without a replica`);
      const metrics = await Promise.all(world.apis.map(({ node }) => node.metrics()));
      const unconfirmed = metrics.reduce((sum, each) => sum + (each.get('seckill_register_unconfirmed_total') ?? 0), 0);
      stage.expect(unconfirmed > 0, 'I10 the metrics do not show that nothing was confirmed');
      await world.replica?.up();
      await world.replicaInStep();
      await stage.recovered(20_000);
      await rush.done;
    },
  },
  {
    id: 'F46',
    title: 'The former primary returns as it was, never restarted nor told (split brain)',
    needs: { replica: true },
    spoilsWorld: true,
    async run(stage) {
      const { world, sale } = stage;
      // Two histories are sold from: what they sold twice the record refuses, and the buyers are told.
      sale.expected = { ...sale.expected, mayReject: true };
      const rush = stage.rush({ tries: 30, thinkMs: 300 });
      await stage.accepted(stage.random.between(30, 100));
      const first = world.redis;
      await world.promoteReplica();
      await stage.recovered(20_000);
      await stage.accepted(stage.random.between(50, 150));
      const buyers = await stage.reader.buyers(sale.voucherId);
      await world.redis.down('SIGKILL');
      world.returnTo(first);
      stage.mayLoseSentUntilNow();
      await stage.clickAgain(buyers);
      await stage.recovered(20_000);
      await rush.done;
      await drainMeasured(stage, 90_000, 'the reconciliation');
    },
  },
];
