import { Redis } from 'ioredis';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RedisServer } from '../faults/store-servers.js';
import { pause, until } from '../support/waiting.js';
import { TestSentinel } from '../support/sentinel.js';
import { Fleet, runFolder } from './fleet.js';
import { RESTART_AFTER_MS } from './redis-cluster.js';

const RESUME_LIMIT_MS = 10_000;
const WAIT_LIMIT_MS = 60_000;
const BUYERS = 32;
const MASTER = 'sales';

const folder = runFolder();
const servers: RedisServer[] = [];
const sentinels: TestSentinel[] = [];
let client: Redis | undefined;
let fleet: Fleet;

beforeAll(async () => {
  const primary = await RedisServer.start(join(folder.dir, 'redis-0'), ['--repl-diskless-sync-delay', '0']);
  servers.push(primary);
  const replicaOf = ['--replicaof', `127.0.0.1 ${primary.port}`, '--repl-diskless-sync-delay', '0'];
  servers.push(await RedisServer.start(join(folder.dir, 'redis-1'), replicaOf));
  await until('the replica is attached', () => replicated(primary), WAIT_LIMIT_MS);
  for (let nth = 0; nth < 3; nth += 1) {
    sentinels.push(
      await TestSentinel.start([
        `sentinel monitor ${MASTER} 127.0.0.1 ${primary.port} 2`,
        `sentinel down-after-milliseconds ${MASTER} 1500`,
        `sentinel failover-timeout ${MASTER} 6000`,
      ]),
    );
  }
  await until(
    'the sentinels know each other',
    async () => {
      const facts = await Promise.all(sentinels.map(({ port }) => ask(port, 'MASTER', MASTER)));
      return facts.every(
        (flat) => Number(field(flat, 'num-other-sentinels')) === 2 && Number(field(flat, 'num-slaves')) === 1,
      );
    },
    WAIT_LIMIT_MS,
  );
  const nodes = sentinels.map(({ port }) => ({ host: '127.0.0.1', port }));
  client = new Redis({ sentinels: nodes, name: MASTER });
  client.on('error', () => undefined);
  const env = {
    REDIS_SENTINELS: nodes.map(({ host, port }) => `${host}:${port}`).join(','),
    REDIS_MASTER_NAME: MASTER,
    STREAM_PARTITIONS: '2',
  };
  fleet = await Fleet.start(folder.dir, env, client);
}, 240_000);
afterAll(async () => {
  await (fleet as Fleet | undefined)?.stop();
  client?.disconnect();
  await Promise.all(sentinels.map((sentinel) => sentinel.destroy()));
  for (const server of servers) server.thaw();
  await Promise.all(servers.map((server) => server.down('SIGKILL')));
  folder.remove();
}, 60_000);

async function ask(port: number, ...words: string[]): Promise<string[]> {
  const sentinel = new Redis({ port, host: '127.0.0.1' });
  try {
    return (await sentinel.call('SENTINEL', ...words)) as string[];
  } finally {
    sentinel.disconnect();
  }
}

const field = (flat: readonly string[], name: string) => flat[flat.indexOf(name) + 1];

const replicated = async (server: RedisServer) =>
  (await server.with((redis) => redis.info('replication'))).includes('state=online');

/** The server that a sentinel names. */
async function primaryNow(): Promise<RedisServer> {
  const [, port] = await ask((sentinels[0] as TestSentinel).port, 'GET-MASTER-ADDR-BY-NAME', MASTER);
  const found = servers.find((server) => server.port === Number(port));
  if (found === undefined) throw new Error(`no server listens on ${port}`);
  return found;
}

async function follow(faultMs: number, old: RedisServer): Promise<void> {
  // Promoted, or the old one is back before anybody was.
  await until(
    'the named primary has a replica',
    async () => {
      const primary = await primaryNow();
      return primary.isRunning && (await replicated(primary));
    },
    WAIT_LIMIT_MS,
  );
  const attachedMs = performance.now();
  const partitions = [...new Set(fleet.vouchers.map(({ partition }) => partition))];
  const tookMs = await fleet.resumed(partitions, attachedMs, WAIT_LIMIT_MS);
  const promoted = (await primaryNow()) !== old;
  console.log(
    `${promoted ? 'promoted' : 'same primary'}: attached after ${Math.round(attachedMs - faultMs)} ms, resumed ${tookMs} ms later`,
  );
  await fleet.accepted(100);
  const broken = await fleet.verdict();
  if (broken.length > 0) console.log(fleet.lastWords());
  expect(broken).toEqual([]);
  expect(tookMs).toBeLessThanOrEqual(RESUME_LIMIT_MS);
}

describe.sequential('one primary, one replica, three sentinels, ADMISSION_DURABILITY=replica', () => {
  it('sells through sentinels alone', async () => {
    await fleet.openSales(20, 100_000);
    fleet.startLoad(BUYERS);
    await fleet.accepted(400);
    expect(await fleet.verdict()).toEqual([]);
  });

  it('a primary killed under load: nothing accepted is lost, selling resumes', async () => {
    fleet.startLoad(BUYERS);
    await fleet.accepted(200);
    const primary = await primaryNow();
    const faultMs = performance.now();
    await primary.down('SIGKILL');
    await pause(RESTART_AFTER_MS);
    await primary.up();
    await follow(faultMs, primary);
  });

  it('a primary frozen under load is followed to its successor, and comes back as a replica', async () => {
    fleet.startLoad(BUYERS);
    await fleet.accepted(200);
    const primary = await primaryNow();
    const faultMs = performance.now();
    primary.freeze();
    await until('another primary is named', async () => (await primaryNow()) !== primary, WAIT_LIMIT_MS);
    primary.thaw();
    await follow(faultMs, primary);
    expect(await primaryNow()).not.toBe(primary);
  });

  it('an emptied script cache is not noticed, and the audit finds both stores in agreement', async () => {
    fleet.startLoad(BUYERS);
    await fleet.accepted(50);
    for (const server of servers) await server.with((redis) => redis.script('FLUSH'));
    const faultMs = performance.now();
    await fleet.accepted(100);
    expect(fleet.troubled([0, 1], faultMs)).toEqual([]);
    expect(await fleet.verdict()).toEqual([]);
    const { code, words } = await fleet.audit();
    expect({ code, words: code === 0 ? '' : words }).toEqual({ code: 0, words: '' });
  });
});
