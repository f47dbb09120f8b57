/** redlock 5.0.0-beta.2 ships types that its package exports hide under nodenext: the part that is used here. */
declare module 'redlock' {
  import type { Cluster, Redis } from 'ioredis';

  export interface Settings {
    readonly driftFactor: number;
    readonly retryCount: number;
    readonly retryDelay: number;
    readonly retryJitter: number;
    readonly automaticExtensionThreshold: number;
  }

  export class Lock {
    readonly expiration: number;
    release(): Promise<unknown>;
    extend(durationMs: number): Promise<Lock>;
  }

  export default class Redlock {
    constructor(clients: Iterable<Redis | Cluster>, settings?: Partial<Settings>);
    acquire(resources: string[], durationMs: number, settings?: Partial<Settings>): Promise<Lock>;
  }
}
