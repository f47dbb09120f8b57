import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { expect, vi } from 'vitest';
import { TestRedis } from './services.js';

const SLOTS = 16_384;
const MIGRATE_LIMIT_MS = 5_000;

/** A slot on its way from one primary to another. */
export interface SlotMove {
  /** Brings the slot's keys over; the slot itself is still the source's. */
  readonly moveKeys: () => Promise<void>;
  /** The slot is the target's. */
  readonly finish: () => Promise<void>;
  /** Called off: the slot stays where it was. For a slot whose keys did not move. */
  readonly callOff: () => Promise<void>;
}

/** Three primaries that share the slots: what a one-node cluster hides (undeclared keys, keys of several slots, redirections) fails here. */
export class TestCluster {
  private constructor(
    readonly nodes: readonly TestRedis[],
    private readonly clients: readonly Redis[],
    private readonly configs: string,
  ) {}

  static async start(): Promise<TestCluster> {
    const configs = mkdtempSync(join(tmpdir(), 'flash-sale-cluster-'));
    const nodes = await Promise.all(
      [0, 1, 2].map((at) =>
        TestRedis.start(['--cluster-enabled', 'yes', '--cluster-config-file', join(configs, `${at}.conf`)]),
      ),
    );
    const clients = nodes.map(({ url }) => new Redis(url));
    const [first] = nodes as [TestRedis];
    for (const [at, client] of clients.entries()) {
      const [from, to] = [Math.ceil((at * SLOTS) / 3), Math.ceil(((at + 1) * SLOTS) / 3) - 1];
      await client.call('CLUSTER', 'ADDSLOTSRANGE', from, to);
      await client.call('CLUSTER', 'SET-CONFIG-EPOCH', at + 1);
      await client.call('CLUSTER', 'MEET', '127.0.0.1', first.port);
    }
    await vi.waitFor(
      async () => {
        for (const client of clients) expect(await client.call('CLUSTER', 'INFO')).toContain('cluster_state:ok');
        for (const client of clients) expect(await client.call('CLUSTER', 'INFO')).toContain('cluster_known_nodes:3');
      },
      { timeout: 30_000, interval: 100 },
    );
    return new TestCluster(nodes, clients, configs);
  }

  get addresses(): { host: string; port: number }[] {
    return this.nodes.map(({ port }) => ({ host: '127.0.0.1', port }));
  }

  /** A client of the node that began with the slot. */
  firstOwnerOf(slot: number): Redis {
    return this.clients[Math.floor((slot * 3) / SLOTS)] as Redis;
  }

  async slotOf(key: string): Promise<number> {
    return Number(await (this.clients[0] as Redis).call('CLUSTER', 'KEYSLOT', key));
  }

  /** Begins to move the slot from the node that began with it to the next one. */
  async beginMove(slot: number): Promise<SlotMove> {
    const at = Math.floor((slot * 3) / SLOTS);
    const to = (at + 1) % 3;
    const [source, target] = [this.clients[at] as Redis, this.clients[to] as Redis];
    const targetId = String(await target.call('CLUSTER', 'MYID'));
    await target.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', String(await source.call('CLUSTER', 'MYID')));
    await source.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', targetId);
    return {
      moveKeys: async () => {
        const keys = (await source.call('CLUSTER', 'GETKEYSINSLOT', slot, 100)) as string[];
        const { port } = this.nodes[to] as TestRedis;
        if (keys.length > 0) await source.call('MIGRATE', '127.0.0.1', port, '', 0, MIGRATE_LIMIT_MS, 'KEYS', ...keys);
      },
      finish: async () => {
        for (const node of [target, source]) await node.call('CLUSTER', 'SETSLOT', slot, 'NODE', targetId);
      },
      callOff: async () => {
        for (const node of [source, target]) await node.call('CLUSTER', 'SETSLOT', slot, 'STABLE');
      },
    };
  }

  async destroy(): Promise<void> {
    for (const client of this.clients) client.disconnect();
    await Promise.all(this.nodes.map((node) => node.destroy()));
    rmSync(this.configs, { recursive: true, force: true });
  }
}
