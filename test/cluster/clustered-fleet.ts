import type { Cluster } from 'ioredis';
import { Fleet, runFolder } from './fleet.js';
import { RedisCluster } from './redis-cluster.js';

/** The fleet on a cluster of three primaries and three replicas, with 8 partitions. */
export interface ClusteredFleet {
  readonly cluster: RedisCluster;
  /** The harness's own. */
  readonly client: Cluster;
  readonly fleet: Fleet;
  readonly stop: () => Promise<void>;
}

/** Starts all of it, or nothing. `nodeTimeoutMs`: a node that is silent for so long is taken for dead; default that of `RedisCluster`. */
export async function startClusteredFleet(nodeTimeoutMs?: number): Promise<ClusteredFleet> {
  const folder = runFolder();
  const stops: (() => unknown)[] = [() => folder.remove()];
  const stop = async (): Promise<void> => {
    for (const end of stops.reverse()) await end();
  };
  try {
    const cluster = await RedisCluster.start(folder.dir, nodeTimeoutMs);
    stops.push(() => cluster.stop());
    const client = cluster.connect();
    stops.push(() => client.disconnect());
    const env = { REDIS_CLUSTER_NODES: cluster.nodes, STREAM_PARTITIONS: '8' };
    const fleet = await Fleet.start(folder.dir, env, client);
    stops.push(() => fleet.stop());
    return { cluster, client, fleet, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
