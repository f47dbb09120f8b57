import { Logger } from '@nestjs/common';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { readSettings, type Settings } from '#config';
import { RedisConnections } from '#redis';
import { TestRedis } from '../../../test/support/services.js';
import { LoginCodes } from './login-codes.js';
import { LoginKeys } from './login-keys.js';

let server: TestRedis;
let operator: Redis;
const opened: RedisConnections[] = [];

beforeAll(async () => {
  server = await TestRedis.start();
  operator = new Redis(server.url);
});
afterEach(() => {
  vi.restoreAllMocks();
  for (const connections of opened.splice(0)) connections.onApplicationShutdown();
});
afterAll(async () => {
  operator.disconnect();
  await server.destroy();
});

async function codesIn(mode: Settings['mode']): Promise<LoginCodes> {
  const read = readSettings({ REDIS_URL: server.url, AUTH_JWT_SECRET: 'x'.repeat(32) });
  if (!read.ok) throw new Error(read.problems.join('; '));
  const settings = { ...read.settings, mode };
  const connections = new RedisConnections(settings);
  opened.push(connections);
  expect(await connections.whenReady(10_000)).toBe(true);
  return new LoginCodes(connections, new LoginKeys(settings), settings);
}

/** Everything that is logged from here on. */
function logged(): () => string {
  const spies = (['log', 'warn', 'error', 'debug', 'verbose'] as const).map((level) =>
    vi.spyOn(Logger.prototype, level).mockImplementation(() => undefined),
  );
  return () => spies.flatMap((spy) => spy.mock.calls.map((call) => call.join(' '))).join('\n');
}

it('shows the code in the log in development', async () => {
  const codes = await codesIn('development');
  const log = logged();
  expect(await codes.send('13800000001')).toBe('SENT');
  expect(log()).toContain(`login code of 13800000001: ${await operator.get('login:code:13800000001')}`);
});

it('never shows it in production, and says at the start that something else must send it', async () => {
  const codes = await codesIn('production');
  const log = logged();
  codes.onModuleInit();
  expect(log()).toContain('something of yours must send login:code:<phone>');
  expect(await codes.send('13800000002')).toBe('SENT');
  const code = (await operator.get('login:code:13800000002')) as string;
  expect(code).toMatch(/^[0-9]{6}$/);
  expect(log()).not.toContain(code);
  expect(await codes.redeem('13800000002', code)).toBe(true);
});

it('takes a code that a load plan put there itself, and leaves no key behind', async () => {
  const codes = await codesIn('development');
  await operator.set('login:code:13800000003', '123456', 'EX', 120);
  expect(await codes.redeem('13800000003', '654321')).toBe(false);
  expect(await codes.redeem('13800000003', '123456')).toBe(true);
  expect(await operator.keys('*13800000003*')).toEqual([]);
});

it('is good for one login, also where the right code comes several times at once', async () => {
  const codes = await codesIn('development');
  await operator.set('login:code:13800000005', '123456', 'EX', 120);
  const redeemed = await Promise.all(Array.from({ length: 4 }, () => codes.redeem('13800000005', '123456')));
  expect(redeemed.filter(Boolean)).toHaveLength(1);
});

it('makes no key for a phone that asked for no code', async () => {
  const codes = await codesIn('development');
  expect(await codes.redeem('13800000004', '123456')).toBe(false);
  expect(await operator.keys('*13800000004*')).toEqual([]);
});

it('limits the codes of all phones together', async () => {
  const codes = await codesIn('development');
  logged();
  const asked = Array.from({ length: 2_500 }, (_, index) => codes.send(String(13_900_000_000 + index)));
  const outcomes = await Promise.all(asked);
  expect(outcomes.slice(0, 2_000).every((outcome) => outcome === 'SENT')).toBe(true);
  expect(outcomes.at(-1)).toBe('TOO_OFTEN');
});
