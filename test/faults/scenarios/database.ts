import type { Scenario } from '../runner.js';
import type { Stage } from '../stage.js';
import { until } from '../../support/waiting.js';
import { drainMeasured, gather, letDrain } from './drain.js';

/** A session that holds the stock row of the sale under test, until `release` is called. */
async function holdStockRow(stage: Stage): Promise<{ release: () => Promise<void> }> {
  let release = (): void => undefined;
  let held = (): void => undefined;
  const isHeld = new Promise<void>((resolve) => (held = resolve));
  const isOver = new Promise<void>((resolve) => (release = resolve));
  const session = stage.world.postgres.session(async (client) => {
    await client.query('BEGIN');
    await client.query('SELECT FROM tb_seckill_voucher WHERE voucher_id = $1 FOR UPDATE', [stage.sale.voucherId]);
    held();
    await isOver;
    await client.query('ROLLBACK');
  });
  await Promise.race([isHeld, session]);
  return {
    release: () => {
      release();
      return session;
    },
  };
}

export const databaseScenarios: readonly Scenario[] = [
  {
    id: 'F22',
    title: 'The reply to COMMIT is lost on the way',
    async run(stage) {
      await gather(stage);
      let lost = 0;
      letDrain(stage);
      for (const { database } of stage.world.workers) {
        database.onRequest = (chunk) => {
          if (lost >= 4 || !chunk.includes('COMMIT')) return 'FORWARD';
          lost += 1;
          return 'FORWARD_AND_CUT';
        };
      }
      await until('replies to COMMIT are lost', () => lost >= 2, 30_000);
      for (const { database } of stage.world.workers) database.onRequest = undefined;
      stage.notes.push(`${lost} lost`);
      await drainMeasured(stage, 30_000, 'the drain');
    },
  },
  {
    id: 'F28',
    title: 'Redis and PostgreSQL killed at the same moment',
    async run(stage) {
      const { redis, postgres } = stage.world;
      const rush = stage.rush({ tries: 20 });
      await stage.accepted(stage.random.between(30, 250));
      await Promise.all([redis.down('SIGKILL'), postgres.down('SIGKILL')]);
      await stage.lasts(stage.random.between(0, 2000));
      await Promise.all([redis.up(), postgres.up()]);
      await stage.recovered(30_000);
      await rush.done;
    },
  },
  {
    id: 'F29',
    title: 'PostgreSQL away for a minute; the backlog has a cap',
    needs: { settings: { MAX_BACKLOG: '300' } },
    async run(stage) {
      const { postgres, workers, redis } = stage.world;
      for (const { database } of workers) database.refuse();
      const rush = stage.rush({ tries: 2 });
      await stage.accepted(stage.random.between(20, 100));
      await postgres.down('SIGQUIT');
      await stage.heard(1, ({ code }) => code === 'OVERLOADED', 'purchases refused at the backlog cap');
      await rush.done;
      await stage.lasts(60_000);
      const partition = stage.partition;
      const backlog = await redis.with((client) => client.xlen(`stream.orders:{${partition}}`));
      stage.expect(backlog <= 300, `the backlog grew to ${backlog}, the cap is 300`);
      stage.expect(backlog >= 250, `the backlog ended at ${backlog}: admissions did not go on without the database`);
      await postgres.up();
      letDrain(stage);
      await stage.recovered(30_000);
      await drainMeasured(stage, 30_000, 'the drain');
    },
  },
  {
    id: 'F30',
    title: 'PostgreSQL slow (200 ms on the link) and the stock row locked for 6 s',
    async run(stage) {
      const row = await holdStockRow(stage);
      for (const { database } of stage.world.nodes) database.delayMs = 100;
      const rush = stage.rush();
      await rush.done;
      await stage.lasts(6000);
      await row.release();
      for (const { database } of stage.world.nodes) database.heal();
      const took = stage.history
        .of(stage.sale.voucherId)
        .map(({ tookMs }) => tookMs)
        .sort((a, b) => a - b);
      const p99 = Math.round(took[Math.floor(took.length * 0.99)] ?? 0);
      stage.notes.push(`p99 of purchases ${p99} ms`);
      stage.expect(p99 <= 1500, `a slow database slowed the purchases: p99 ${p99} ms`);
      await drainMeasured(stage, 30_000, 'the drain');
    },
  },
  {
    id: 'F31',
    title: 'Deadlocks and serialization failures injected into the storing transactions',
    async run(stage) {
      const { postgres } = stage.world;
      await postgres.query(`
        CREATE SEQUENCE IF NOT EXISTS fault_conflicts;
        CREATE OR REPLACE FUNCTION fault_conflict() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          IF random() < 0.4 THEN
            PERFORM nextval('fault_conflicts');
            IF random() < 0.5 THEN RAISE EXCEPTION 'injected' USING ERRCODE = '40P01'; END IF;
            RAISE EXCEPTION 'injected' USING ERRCODE = '40001';
          END IF;
          RETURN NULL;
        END $$;
        CREATE OR REPLACE TRIGGER fault_conflict AFTER INSERT ON tb_voucher_order
          FOR EACH STATEMENT EXECUTE FUNCTION fault_conflict()`);
      try {
        await gather(stage);
        letDrain(stage);
        await drainMeasured(stage, 60_000, 'the drain');
        const [count] = await postgres.query<{ last_value: string }>('SELECT last_value FROM fault_conflicts');
        stage.notes.push(`${count?.last_value} conflicts`);
      } finally {
        await postgres.query(
          'DROP TRIGGER fault_conflict ON tb_voucher_order; DROP FUNCTION fault_conflict; DROP SEQUENCE fault_conflicts',
        );
      }
    },
  },
  {
    id: 'F32',
    title: 'PostgreSQL killed (SIGKILL) during the drain',
    async run(stage) {
      const { postgres } = stage.world;
      await gather(stage);
      letDrain(stage);
      await stage.begunToStore();
      await postgres.down('SIGKILL');
      await postgres.up();
      await stage.recovered(30_000);
      await drainMeasured(stage, 30_000, 'the drain');
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
      stage.sale.expected = { ...stage.sale.expected, planted, mayReject: true };
      await stage.rush({ fresh: users }).done;
      await stage.drained();
      await checkPlanted(stage, users, planted);
      await stage.recovered(10_000);
    },
  },
];

async function checkPlanted(stage: Stage, users: readonly string[], planted: ReadonlySet<string>): Promise<void> {
  const state = await stage.reader.sale(stage.sale.voucherId);
  const own = new Set(users);
  const accepted = stage.history.count(({ userId, knowledge }) => own.has(userId) && knowledge === 'ACCEPTED');
  const told = state.inactive.filter(({ userId }) => own.has(userId));
  stage.expect(told.length === accepted, `${accepted} of them were accepted, ${told.length} rejections are recorded`);
  for (const userId of users) {
    const id = state.active.find((row) => row.userId === userId)?.id;
    stage.expect(id !== undefined && planted.has(id), `the order of user ${userId} that was there first is gone`);
    const mark = state.marks.get(userId);
    stage.expect(mark === undefined || mark === id, `the mark of user ${userId} names ${mark}, his order is ${id}`);
  }
}
