import { Cluster, type Command } from 'ioredis';

/**
 * A cluster client that rejects at once what it cannot send. The driver's own setting (enableOfflineQueue false) would also reject
 * commands to a node whose connection is just being opened, at every start and failover: those may wait, within the node's timeouts.
 */
export class FailFastCluster extends Cluster {
  override sendCommand(...args: Parameters<Cluster['sendCommand']>): ReturnType<Cluster['sendCommand']> {
    const command: Command = args[0];
    // The client asks CLUSTER itself, to become ready.
    if (this.status !== 'ready' && command.name !== 'cluster') {
      command.reject(new Error("Cluster isn't ready and enableOfflineQueue options is false"));
      return command.promise;
    }
    return super.sendCommand(...args);
  }
}
