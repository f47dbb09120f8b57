import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Scenario } from '../runner.js';
import { mayMount } from '../small-disk.js';
import type { Stage } from '../stage.js';
import { until } from '../../support/waiting.js';

async function unavailableHeard(stage: Stage): Promise<void> {
  await stage.heard(1, ({ code }) => code === 'UNAVAILABLE', 'purchases that hear UNAVAILABLE');
}

/** The level of durability as the first API process tells it. */
async function durability(stage: Stage): Promise<{ status?: string; level?: string }> {
  const { body } = await stage.call('GET', '/health/ready');
  return (body['parts'] as Record<string, { status?: string; level?: string }>)['durability'] ?? {};
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
      await stage.recovered(20_000);
      await rush.done;
    },
  },
  {
    id: 'F6',
    title: 'The same with appendfsync everysec: named as not durable',
    needs: { redisArgs: ['--appendfsync', 'everysec'] },
    async run(stage) {
      const { redis } = stage.world;
      const told = await durability(stage);
      stage.expect(
        told.level === 'everysec' && told.status === 'degraded',
        `durability is told as ${JSON.stringify(told)}`,
      );
      const rush = stage.rush();
      await stage.accepted(stage.random.between(30, 250));
      await redis.down('SIGKILL');
      stage.mayLoseSentUntilNow();
      await redis.up();
      await stage.recovered(20_000);
      await rush.done;
    },
  },
  {
    id: 'F7',
    title: 'Links to Redis half-closed, cut and delayed, again and again',
    async run(stage) {
      const rush = stage.rush({ thinkMs: 300 });
      for (let round = 0; round < 6; round += 1) {
        await stage.heard(30, () => true, 'answers');
        const { redis } = stage.random.pick(stage.world.nodes);
        const harm = stage.random.between(1, 3);
        if (harm === 1) redis.halfClose();
        else if (harm === 2) redis.cut();
        else redis.delayMs = stage.random.between(50, 400);
      }
      for (const { redis } of stage.world.nodes) redis.heal();
      await stage.recovered(15_000);
      await rush.done;
    },
  },
  {
    id: 'F8',
    title: 'Redis frozen for 4 s',
    async run(stage) {
      const { redis } = stage.world;
      const rush = stage.rush();
      await stage.accepted(stage.random.between(30, 250));
      redis.freeze();
      await stage.lasts(4000);
      redis.thaw();
      await stage.recovered(15_000);
      await rush.done;
    },
  },
  {
    id: 'F9',
    title: 'The disk of the append-only file is full',
    needs: { redisDiskMb: 24 },
    skipped: mayMount,
    spoilsWorld: true,
    async run(stage) {
      const { redis } = stage.world;
      const rush = stage.rush();
      await stage.accepted(stage.random.between(30, 150));
      const filler = join(redis.dir, 'filler');
      fill(filler);
      await until(
        'Redis refuses or ends',
        () => !redis.isRunning || stage.history.calls.at(-1)?.knowledge === 'REFUSED',
        30_000,
      );
      await stage.heard(1, ({ knowledge }) => knowledge !== 'ACCEPTED', 'purchases that are not accepted');
      rmSync(filler);
      await redis.down('SIGKILL');
      await redis.up();
      await stage.recovered(20_000);
      await rush.done;
    },
  },
  {
    id: 'F12',
    title: 'Failover to the replica and back again',
    needs: { replica: true },
    spoilsWorld: true,
    async run(stage) {
      const { world } = stage;
      const rush = stage.rush({ tries: 30 });
      await stage.accepted(stage.random.between(30, 150));
      const first = world.redis;
      // Replication is asynchronous: what the replica had not yet seen is lost, as the setting `local` says.
      await first.down('SIGKILL');
      await world.promoteReplica();
      stage.mayLoseSentUntilNow();
      await stage.recovered(20_000);
      const second = world.redis;
      await first.up(['--replicaof', '127.0.0.1', String(second.port)]);
      world.replica = first;
      await world.replicaInStep();
      await second.down('SIGKILL');
      await world.promoteReplica();
      stage.mayLoseSentUntilNow();
      await stage.recovered(20_000);
      await rush.done;
    },
  },
  {
    id: 'F14',
    title: 'Redis answers late: 0.7 to 2.5 s',
    async run(stage) {
      const rush = stage.rush();
      await stage.accepted(stage.random.between(30, 150));
      for (const { redis } of stage.world.nodes) redis.delayMs = stage.random.between(350, 1250);
      await stage.lasts(3000);
      for (const { redis } of stage.world.nodes) redis.heal();
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
      await unavailableHeard(stage);
      await stage.recovered(20_000);
      await rush.done;
    },
  },
  {
    id: 'F16',
    title: 'SCRIPT FLUSH, again and again, under load',
    async run(stage) {
      const { redis } = stage.world;
      const rush = stage.rush({ thinkMs: 200 });
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
  {
    id: 'F17',
    title: 'One API process cut off from Redis; what it sent arrives 3 s late',
    async run(stage) {
      const { redis } = stage.random.pick(stage.world.apis);
      const rush = stage.rush();
      await stage.accepted(stage.random.between(30, 250));
      redis.stall();
      await stage.lasts(3000);
      redis.heal();
      await stage.recovered(15_000);
      await rush.done;
    },
  },
  {
    id: 'F18',
    title: 'Redis full (maxmemory, noeviction) during admission',
    async run(stage) {
      const { redis } = stage.world;
      const rush = stage.rush();
      await stage.accepted(stage.random.between(30, 150));
      await redis.with(async (client) => {
        const used = Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1]);
        await client.config('SET', 'maxmemory', String(used));
      });
      await unavailableHeard(stage);
      await rush.done;
      await redis.with((client) => client.config('SET', 'maxmemory', '0'));
      await stage.recovered(15_000);
    },
  },
  {
    id: 'F34',
    title: 'Keys of the sale deleted or changed by hand',
    async run(stage) {
      const { sale, world } = stage;
      const key = (kind: string) => `seckill:${kind}:{${stage.partition}}:${sale.voucherId}`;
      const harms = ['DEL stock', 'DEL sale', 'DEL marks', 'HDEL marks', 'INCRBY stock', 'SET stock'] as const;
      const rush = stage.rush({ tries: 20, thinkMs: 300 });
      for (let round = 0; round < 3; round += 1) {
        await stage.accepted(stage.random.between(10, 60));
        const harm = stage.random.pick(harms);
        stage.notes.push(harm);
        await world.redis.with(async (client) => {
          const marked = await client.hkeys(key('order'));
          if (harm === 'DEL stock') await client.del(key('stock'));
          else if (harm === 'DEL sale') await client.del(key('sale'));
          else if (harm === 'DEL marks') await client.del(key('order'));
          else if (harm === 'HDEL marks') await client.hdel(key('order'), ...marked.slice(0, 20));
          else if (harm === 'INCRBY stock') await client.incrby(key('stock'), 50);
          else await client.set(key('stock'), 'many');
        });
        await stage.recovered(20_000);
        await stage.decides(20_000);
      }
      await rush.done;
    },
  },
  {
    id: 'F36',
    title: 'Redis restored from an older copy of its data',
    async run(stage) {
      const { redis } = stage.world;
      const rush = stage.rush({ tries: 20, thinkMs: 200 });
      await stage.accepted(stage.random.between(20, 100));
      const copy = `${redis.dir}.older`;
      cpSync(redis.dir, copy, { recursive: true });
      await stage.accepted(stage.random.between(50, 150));
      await redis.down('SIGKILL');
      redis.forget();
      cpSync(copy, redis.dir, { recursive: true });
      rmSync(copy, { recursive: true });
      const buyers = await stage.reader.buyers(stage.sale.voucherId);
      await redis.up();
      stage.mayLoseSentUntilNow();
      await Promise.all([stage.clickAgain(buyers), stage.recovered(20_000)]);
      await rush.done;
    },
  },
];

/** Writes until the file system takes no more. */
function fill(file: string): void {
  const piece = Buffer.alloc(64 * 1024);
  try {
    for (;;) writeFileSync(file, piece, { flag: 'a' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
  for (;;) {
    try {
      writeFileSync(file, piece.subarray(0, 512), { flag: 'a' });
    } catch {
      return;
    }
  }
}
