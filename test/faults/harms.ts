import type { Random } from './random.js';
import type { Stage } from './stage.js';
import { isAcknowledgement } from './scenarios/consumer.js';
import type { LinkedNode } from './world.js';

/** One harm of the random walk: `begin` does it and answers how it ends. Harms with the same target are not done at the same time. */
export interface Harm {
  readonly name: string;
  readonly target: string;
  /** What only some worlds have. */
  readonly needs?: 'replica';
  readonly begin: (stage: Stage, random: Random) => Promise<() => unknown>;
}

function linkHarm(
  name: string,
  side: 'redis' | 'database',
  act: (link: LinkedNode['redis'], random: Random) => void,
): Harm {
  return {
    name,
    target: 'links',
    begin: ({ world }, random) => {
      const links = random.chance(0.3) ? world.nodes : [random.pick(world.nodes)];
      for (const linked of links) act(linked[side], random);
      return Promise.resolve(() => links.forEach((linked) => linked[side].heal()));
    },
  };
}

function processHarm(name: string, which: 'apis' | 'workers', signal: 'SIGKILL' | 'SIGTERM' | 'SIGSTOP'): Harm {
  return {
    name,
    target: which,
    begin: async ({ world }, random) => {
      const { node } = random.pick(world[which]);
      if (signal === 'SIGSTOP') {
        node.signal('SIGSTOP');
        return () => node.signal('SIGCONT');
      }
      await node.down(signal);
      return () => node.up();
    },
  };
}

/** What the walk draws from. The rare and lossy ones stand once, the others weigh as often as they stand. */
export const harms: readonly Harm[] = [
  {
    name: 'Redis killed',
    target: 'redis',
    begin: async ({ world }) => {
      await world.redis.down('SIGKILL');
      return () => world.redis.up();
    },
  },
  {
    name: 'Redis frozen',
    target: 'redis',
    begin: ({ world }) => {
      const { redis } = world;
      redis.freeze();
      return Promise.resolve(() => redis.thaw());
    },
  },
  {
    name: 'Redis emptied',
    target: 'redis',
    begin: async (stage) => {
      await stage.world.redis.with((redis) => redis.flushall());
      stage.mayLoseSentUntilNow();
      return () => undefined;
    },
  },
  {
    name: 'failover',
    target: 'redis',
    needs: 'replica',
    begin: async ({ world }) => {
      await world.redis.down('SIGKILL');
      await world.promoteReplica();
      return () => world.addReplica();
    },
  },
  {
    name: 'replica frozen',
    target: 'replica',
    needs: 'replica',
    begin: ({ world }) => {
      const { replica } = world;
      replica?.freeze();
      return Promise.resolve(() => replica?.thaw());
    },
  },
  {
    name: 'replica cut off',
    target: 'replica',
    needs: 'replica',
    begin: ({ world }) => {
      const { replicaLink } = world;
      replicaLink?.blackHole();
      return Promise.resolve(() => replicaLink?.heal());
    },
  },
  {
    name: 'scripts flushed',
    target: 'scripts',
    begin: async ({ world }) => {
      await world.redis.with((redis) => redis.script('FLUSH'));
      return () => undefined;
    },
  },
  {
    name: 'group destroyed',
    target: 'group',
    begin: async (stage) => {
      await stage.world.redis.with((redis) => redis.xgroup('DESTROY', `stream.orders:{${stage.partition}}`, 'g1'));
      return () => undefined;
    },
  },
  {
    name: 'PostgreSQL killed',
    target: 'postgres',
    begin: async ({ world }) => {
      await world.postgres.down('SIGKILL');
      return () => world.postgres.up();
    },
  },
  {
    name: 'PostgreSQL stopped',
    target: 'postgres',
    begin: async ({ world }) => {
      await world.postgres.down('SIGINT');
      return () => world.postgres.up();
    },
  },
  processHarm('API killed', 'apis', 'SIGKILL'),
  processHarm('API ended', 'apis', 'SIGTERM'),
  processHarm('API frozen', 'apis', 'SIGSTOP'),
  processHarm('worker killed', 'workers', 'SIGKILL'),
  processHarm('worker ended', 'workers', 'SIGTERM'),
  processHarm('worker frozen', 'workers', 'SIGSTOP'),
  linkHarm('Redis link refuses', 'redis', (link) => link.refuse()),
  linkHarm('Redis link stalled', 'redis', (link) => link.stall()),
  linkHarm('Redis link swallows', 'redis', (link) => link.blackHole()),
  linkHarm('Redis link slow', 'redis', (link, random) => (link.delayMs = random.between(50, 1500))),
  linkHarm('Redis link cut', 'redis', (link) => link.cut()),
  linkHarm('database link refuses', 'database', (link) => link.refuse()),
  linkHarm('database link stalled', 'database', (link) => link.stall()),
  linkHarm('database link swallows', 'database', (link) => link.blackHole()),
  linkHarm('database link slow', 'database', (link, random) => (link.delayMs = random.between(50, 400))),
  linkHarm('acknowledgements lost', 'redis', (link) => {
    link.onRequest = (chunk) => (isAcknowledgement(chunk) ? 'LOSE_AND_CUT' : 'FORWARD');
  }),
  linkHarm('replies to COMMIT lost', 'database', (link, random) => {
    link.onRequest = (chunk) => (chunk.includes('COMMIT') && random.chance(0.7) ? 'FORWARD_AND_CUT' : 'FORWARD');
  }),
  linkHarm('replies to admissions lost', 'redis', (link, random) => {
    link.onReply = (_chunk, name) => (name === 'admission' && random.chance(0.3) ? 'LOSE_AND_CUT' : 'FORWARD');
  }),
  {
    name: 'rebuild asked for',
    target: 'rebuild',
    begin: (stage) => {
      const asked = stage.call('POST', `/v1/admin/vouchers/${stage.sale.voucherId}/rebuild`).catch(() => undefined);
      return Promise.resolve(() => asked);
    },
  },
];
