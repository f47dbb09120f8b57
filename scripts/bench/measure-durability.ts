import { type Sample } from './measurement.js';
import { measureAcceptance } from './measure-purchases.js';
import { until } from './sale.js';
import type { Stage } from './stage.js';

export type Durability = 'always' | 'everysec' | 'off';
const IN_FLIGHT = 256;

/** Acceptance under another durability of Redis; what `npm start` uses (always) is set again afterwards. */
export async function measureDurability(stage: Stage, durability: Durability, count: number): Promise<Sample> {
  await setDurability(stage, durability);
  try {
    return await measureAcceptance(stage, IN_FLIGHT, count);
  } finally {
    await setDurability(stage, 'always');
  }
}

/** Acceptance that a replica has confirmed (ADMISSION_DURABILITY=replica), over `appendfsync always`. The replica is there for this alone. */
export async function measureReplicated(stage: Stage, count: number): Promise<Sample> {
  const { api, replica } = await stage.replicated();
  const { hostname, port } = new URL(stage.redisUrl);
  await replica.replicaof(hostname, Number(port));
  try {
    await until('the replica has all', async () => /^master_link_status:up/m.test(await replica.info('replication')));
    return await measureAcceptance(stage, IN_FLIGHT, count, api);
  } finally {
    await replica.call('REPLICAOF', 'NO', 'ONE');
  }
}

async function setDurability({ redis }: Stage, durability: Durability): Promise<void> {
  await redis.config('SET', 'appendonly', durability === 'off' ? 'no' : 'yes');
  if (durability !== 'off') await redis.config('SET', 'appendfsync', durability);
  // Turned on again, the log is written anew first.
  await until('Redis has written its log anew', async () => {
    const facts = await redis.info('persistence');
    return /^aof_rewrite_in_progress:0/m.test(facts) && /^aof_rewrite_scheduled:0/m.test(facts);
  });
}
