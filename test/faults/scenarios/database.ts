import type { Scenario } from '../runner.js';
import { until } from '../waiting.js';

export const databaseScenarios: readonly Scenario[] = [
  {
    id: 'F29',
    title: 'PostgreSQL away for a minute; the backlog has a cap',
    needs: { settings: { MAX_BACKLOG: '300' } },
    async run(stage) {
      const { postgres, workers } = stage.world;
      for (const { database } of workers) database.refuse();
      const rush = stage.rush({ tries: 2 });
      await stage.accepted(stage.random.between(20, 100));
      await postgres.down('SIGQUIT');
      await stage.heard(1, ({ code }) => code === 'OVERLOADED', 'purchases refused at the backlog cap');
      await rush.done;
      await stage.lasts(stage.outageMs(60_000));
      const state = await stage.world.redis.with((redis) => redis.xlen('stream.orders:{0}'));
      stage.expect(state <= 300, `the backlog grew to ${state}, the cap is 300`);
      stage.expect(state >= 250, `the backlog ended at ${state}: admissions did not go on without the database`);
      await postgres.up();
      for (const { database } of workers) database.heal();
      await until('orders move', () => workers[0]?.node.ready('/health/live').then(() => true), 30_000);
      await stage.recovered(30_000);
    },
  },
  {
    id: 'F33',
    title: 'The database already has an order of the buyer',
    async run(stage) {
      const { voucherId } = stage.sale;
      const users = stage.users(20);
      const planted = new Set<string>();
      for (const [nth, userId] of users.entries()) {
        const id = String(7_000_000_000_000_000_000n + BigInt(Number(userId) * 100 + nth));
        planted.add(id);
        await stage.world.postgres.query(
          `WITH cut AS (UPDATE tb_seckill_voucher SET stock = stock - 1 WHERE voucher_id = $3)
           INSERT INTO tb_voucher_order (id, user_id, voucher_id) VALUES ($1, $2, $3)`,
          [id, userId, voucherId],
        );
      }
      stage.sale.expected = { ...stage.sale.expected, planted };
      const rush = stage.rush({ fresh: users });
      await rush.done;
      await stage.drained();
      const state = await stage.reader.sale(voucherId);
      const own = new Set(users);
      const accepted = stage.history.count(({ userId, knowledge }) => own.has(userId) && knowledge === 'ACCEPTED');
      const told = state.inactive.filter(({ userId }) => own.has(userId));
      stage.expect(
        told.length === accepted,
        `${accepted} such purchases were accepted, ${told.length} rejections are recorded`,
      );
      for (const userId of users) {
        const id = state.active.find((row) => row.userId === userId)?.id;
        stage.expect(id !== undefined && planted.has(id), `the order of user ${userId} that was there first is gone`);
        const mark = state.marks.get(userId);
        stage.expect(mark === undefined || mark === id, `the mark of user ${userId} names ${mark}, his order is ${id}`);
      }
      await stage.recovered(10_000);
    },
  },
];
