import { fileURLToPath } from 'node:url';
import { Logger } from '@nestjs/common';
import { Redis } from 'ioredis';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { readSettings } from '#config';
import { RedisConnections } from './redis-connections.js';
import { freePort } from '../../../scripts/services/free-port.mjs';
import { TestSentinel } from '../../../test/support/sentinel.js';
import { TestRedis } from '../../../test/support/services.js';

const fileOf = (name: string) => fileURLToPath(new URL(`../../../test/support/tls/${name}`, import.meta.url));
const CERTIFICATE = fileOf('certificate.pem');
const USER = ['seckill', 'on', '>pass-of-user', '~*', '&*', '+@all'];
const credentials = { REDIS_USERNAME: 'seckill', REDIS_PASSWORD: 'pass-of-user' };

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

/** A server that also speaks TLS, on `tlsPort`; `default` may do nothing but PING there. */
async function secureServer(args: string[] = []): Promise<{ server: TestRedis; tlsPort: number; operator: Redis }> {
  // A cluster that is encrypted has its bus above this port.
  const tlsPort = await freePort({ clusterBus: args.includes('--cluster-enabled') });
  const server = await TestRedis.start([
    ...['--tls-port', String(tlsPort), '--tls-cert-file', CERTIFICATE, '--tls-key-file', fileOf('key.pem')],
    ...['--tls-ca-cert-file', CERTIFICATE, '--tls-auth-clients', 'no'],
    ...args,
  ]);
  undo.push(() => server.destroy());
  const operator = new Redis(server.url);
  undo.push(() => operator.disconnect());
  await operator.call('ACL', 'SETUSER', ...USER);
  return { server, tlsPort, operator };
}

function connect(env: Record<string, string>): RedisConnections {
  const read = readSettings(env, { authRequired: false });
  if (!read.ok) throw new Error(read.problems.join('; '));
  const connections = new RedisConnections(read.settings);
  undo.push(() => connections.onApplicationShutdown());
  return connections;
}

const whoAmI = (connections: RedisConnections) => connections.command.call('ACL', 'WHOAMI');

describe('a single node', () => {
  it('is reached by rediss:// under the authority of REDIS_TLS_CA, as the user of the address', async () => {
    const { tlsPort } = await secureServer();
    const url = `rediss://seckill:pass-of-user@localhost:${tlsPort}`;
    const connections = connect({ REDIS_URL: url, REDIS_TLS_CA: CERTIFICATE });
    expect(await connections.whenReady(10_000)).toBe(true);
    expect(await whoAmI(connections)).toBe('seckill');
    const blocking = connections.openBlocking('reader', 's');
    await vi.waitFor(() => expect(blocking.status).toBe('ready'), 5000);
  });

  it('is not spoken to where its certificate is of an unknown authority, and no secret is logged', async () => {
    const { tlsPort } = await secureServer();
    const warn = vi.spyOn(Logger.prototype, 'warn').mockReturnValue();
    undo.push(() => warn.mockRestore());
    const connections = connect({ REDIS_URL: `rediss://seckill:pass-of-user@localhost:${tlsPort}` });
    await vi.waitFor(() => expect(warn.mock.calls.join('\n')).toMatch(/certificate/), 5000);
    expect(connections.isReady()).toBe(false);
    expect(warn.mock.calls.join('\n')).not.toContain('pass-of-user');
  });

  it('that refuses the password is told without it', async () => {
    const { server } = await secureServer();
    const warn = vi.spyOn(Logger.prototype, 'warn').mockReturnValue();
    undo.push(() => warn.mockRestore());
    connect({ REDIS_URL: `redis://seckill:a-wrong-secret@127.0.0.1:${server.port}` });
    await vi.waitFor(() => expect(warn.mock.calls.join('\n')).toContain('WRONGPASS'), 5000);
    expect(warn.mock.calls.join('\n')).not.toContain('a-wrong-secret');
  });
});

describe('a cluster', () => {
  it('is reached encrypted, as REDIS_USERNAME, at nodes that tell their names', async () => {
    const { tlsPort, operator } = await secureServer([
      ...['--cluster-enabled', 'yes', '--tls-cluster', 'yes', '--cluster-announce-hostname', 'localhost'],
      ...['--cluster-preferred-endpoint-type', 'hostname'],
    ]);
    await operator.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383);
    await vi.waitFor(async () => expect(await operator.call('CLUSTER', 'INFO')).toContain('cluster_state:ok'), 10_000);
    const connections = connect({
      REDIS_CLUSTER_NODES: `localhost:${tlsPort}`,
      REDIS_TLS: 'true',
      REDIS_TLS_CA: CERTIFICATE,
      ...credentials,
    });
    expect(await connections.whenReady(10_000)).toBe(true);
    expect(await whoAmI(connections)).toBe('seckill');
    expect(await connections.command.set('a', '1')).toBe('OK');
    const blocking = connections.openBlocking('reader', 'a');
    await expect.poll(() => connections.isReady(blocking), { timeout: 10_000 }).toBe(true);
    expect(await blocking.get('a')).toBe('1');
  });
});

describe('sentinels', () => {
  it('name the primary, each side with a user and encryption of its own', async () => {
    const { tlsPort } = await secureServer();
    const sentinelTlsPort = await freePort();
    const sentinel = await TestSentinel.start([
      `tls-port ${sentinelTlsPort}`,
      `tls-cert-file ${CERTIFICATE}`,
      `tls-key-file ${fileOf('key.pem')}`,
      `tls-ca-cert-file ${CERTIFICATE}`,
      'tls-auth-clients no',
      'tls-replication yes',
      'user watcher on >pass-of-watcher allchannels +@all',
      `sentinel monitor sales 127.0.0.1 ${tlsPort} 1`,
      'sentinel auth-user sales seckill',
      'sentinel auth-pass sales pass-of-user',
    ]);
    undo.push(() => sentinel.destroy());
    const connections = connect({
      REDIS_SENTINELS: `localhost:${sentinelTlsPort}`,
      REDIS_MASTER_NAME: 'sales',
      REDIS_SENTINEL_USERNAME: 'watcher',
      REDIS_SENTINEL_PASSWORD: 'pass-of-watcher',
      REDIS_TLS: 'true',
      REDIS_TLS_CA: CERTIFICATE,
      ...credentials,
    });
    expect(await connections.whenReady(10_000)).toBe(true);
    expect(await whoAmI(connections)).toBe('seckill');
  });

  it('that do not know the name leave the connection waiting, and that is told', async () => {
    const { server } = await secureServer();
    const sentinel = await TestSentinel.start([`sentinel monitor sales 127.0.0.1 ${server.port} 1`]);
    undo.push(() => sentinel.destroy());
    const warn = vi.spyOn(Logger.prototype, 'warn').mockReturnValue();
    undo.push(() => warn.mockRestore());
    const connections = connect({
      REDIS_SENTINELS: `127.0.0.1:${sentinel.port}`,
      REDIS_MASTER_NAME: 'others',
      ...credentials,
    });
    await vi.waitFor(() => expect(warn.mock.calls.join('\n')).toContain('sentinels are unreachable'), 10_000);
    expect(connections.isReady()).toBe(false);
  });
});
