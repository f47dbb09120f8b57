import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { describeSettings, readSettings, type Environment } from './index.js';

const problemsOf = (env: Environment): readonly string[] => {
  const result = readSettings(env);
  return result.ok ? [] : result.problems;
};
const settingsOf = (env: Environment, authRequired = true) => {
  const result = readSettings(env, { authRequired });
  if (!result.ok) throw new Error(result.problems.join('; '));
  return result;
};
const CERTIFICATE = fileURLToPath(new URL('../../../test/support/tls/certificate.pem', import.meta.url));
const production: Environment = {
  NODE_ENV: 'production',
  REDIS_URL: 'redis://redis:6379',
  DATABASE_URL: 'postgres://u:p@postgres:5432/seckill',
  AUTH_JWT_SECRET: 'x'.repeat(32),
};

describe('settings that are no numbers, or out of range', () => {
  const bad: [string, string][] = [
    ...['abc', '', '0', '-1', '99999', '3000.5', ' 3000', '1e3', '0x50', '３'].map((text): [string, string] => [
      'PORT',
      text,
    ]),
    ...['0', '-1', 'x', '10001'].map((text): [string, string] => ['CONSUMER_BATCH_SIZE', text]),
    ...['0', '-5', ''].map((text): [string, string] => ['CONSUMER_BLOCK_MS', text]),
    ...['0', 'NaN', '-1'].map((text): [string, string] => ['DB_POOL_SIZE', text]),
    ['CLAIM_MIN_IDLE_MS', '1'],
    ...['0', '65', '-1', 'all', ''].map((text): [string, string] => ['API_PROCESSES', text]),
    ['STREAM_PARTITIONS', '0'],
    ['MAX_DELIVERIES', '0'],
    ['MAX_BACKLOG', '0'],
    ['MAX_IN_FLIGHT', '0'],
    ['REQUEST_TIMEOUT_MS', '0'],
    ['SHUTDOWN_TIMEOUT_MS', '0'],
  ];
  it.each(bad)('refuses %s=%j, naming unit and range', (name, text) => {
    const [problem, ...more] = problemsOf({ [name]: text });
    expect(more).toEqual([]);
    expect(problem).toMatch(new RegExp(`^${name} must be a whole number of [a-zA-Z ]+, \\d+ to \\d+; it is ".*"$`));
  });
});

describe('settings that are no names or addresses', () => {
  it.each([
    ['REDIS_URL', ''],
    ['REDIS_URL', 'http://127.0.0.1:6379'],
    ['REDIS_URL', 'redis://127.0.0.1:99999'],
    ['REDIS_URL', 'redis://'],
    ['REDIS_URL', 'redis://127.0.0.1:0'],
    ['REDIS_URL', 'redis://127.0.0.1/orders'],
    ['REDIS_CLUSTER_NODES', ''],
    ['REDIS_CLUSTER_NODES', 'a:1,b'],
    ['REDIS_CLUSTER_NODES', 'a:1, b:2'],
    ['REDIS_CLUSTER_NODES', 'a:99999'],
    ['REDIS_SENTINELS', 'a'],
    ['REDIS_MASTER_NAME', 'my primary'],
    ['REDIS_USERNAME', ''],
    ['REDIS_PASSWORD', ''],
    ['REDIS_TLS', 'on'],
    ['REDIS_TLS_CA', '/no/such/file'],
    ['REDIS_TLS_CA', fileURLToPath(import.meta.url)],
    ['DATABASE_URL', ''],
    ['DATABASE_URL', 'mysql://u@h/d'],
    ['DATABASE_URL', 'postgres://u@h'],
    ['AUTH_JWKS_URL', 'ftp://issuer/keys'],
    ['AUTH_JWT_SECRET', ''],
    ['AUTH_JWT_SECRET', 'x'.repeat(4097)],
    ['ORDER_STREAM', ''],
    ['ORDER_STREAM', ' stream.orders'],
    ['ORDER_STREAM', 'orders{1}'],
    ['ORDER_GROUP', 'g 1'],
    ['CONSUMER_NAME', ''],
    ['CONSUMER_NAME', 'n'.repeat(191)],
    ['REDIS_KEY_PREFIX', 'a{b}'],
    ['CONSUMER_ENABLED', 'maybe'],
    ['HMDP_COMPAT', 'yes'],
    ['ADMISSION_DURABILITY', 'all'],
    ['LOG_LEVEL', 'loud'],
    ['HOST', ''],
    ['NODE_ENV', 'prod'],
  ])('refuses %s=%j', (name, text) => {
    expect(problemsOf({ [name]: text })).toEqual([expect.stringMatching(new RegExp(`^${name} must `))]);
  });
});

describe('contradictions', () => {
  it.each([
    [
      'slow work taken for dead',
      { CLAIM_MIN_IDLE_MS: '2000', CONSUMER_BATCH_SIZE: '5000' },
      'CLAIM_MIN_IDLE_MS (2000 milliseconds)',
    ],
    [
      'an end before running requests are answered',
      { SHUTDOWN_TIMEOUT_MS: '1500' },
      'SHUTDOWN_TIMEOUT_MS (1500 milliseconds)',
    ],
    [
      'a single node and a cluster',
      { REDIS_URL: 'redis://a', REDIS_CLUSTER_NODES: 'b:1' },
      'REDIS_URL and REDIS_CLUSTER_NODES',
    ],
    [
      'a cluster and sentinels',
      { REDIS_CLUSTER_NODES: 'b:1', REDIS_SENTINELS: 'c:1', REDIS_MASTER_NAME: 'm' },
      'REDIS_CLUSTER_NODES and REDIS_SENTINELS',
    ],
    ['sentinels without a name', { REDIS_SENTINELS: 'c:1' }, 'REDIS_SENTINELS needs REDIS_MASTER_NAME'],
    ['a name without sentinels', { REDIS_MASTER_NAME: 'm' }, 'REDIS_MASTER_NAME needs REDIS_SENTINELS'],
    [
      "a single node's password outside of its address",
      { REDIS_URL: 'redis://a', REDIS_PASSWORD: 'p' },
      'REDIS_PASSWORD needs REDIS_CLUSTER_NODES or REDIS_SENTINELS',
    ],
    [
      'a user without a password',
      { REDIS_CLUSTER_NODES: 'b:1', REDIS_USERNAME: 'u' },
      'REDIS_USERNAME needs REDIS_PASSWORD',
    ],
    [
      "sentinels' password without sentinels",
      { REDIS_CLUSTER_NODES: 'b:1', REDIS_SENTINEL_PASSWORD: 'p' },
      'REDIS_SENTINEL_PASSWORD needs REDIS_SENTINELS',
    ],
    [
      'encryption told twice',
      { REDIS_URL: 'rediss://a', REDIS_TLS: 'true' },
      'REDIS_TLS needs REDIS_CLUSTER_NODES or REDIS_SENTINELS',
    ],
    [
      'an authority where nothing is encrypted',
      { REDIS_CLUSTER_NODES: 'b:1', REDIS_TLS_CA: CERTIFICATE },
      'REDIS_TLS_CA needs rediss:// in REDIS_URL, or REDIS_TLS true',
    ],
    [
      'two ways to check tokens',
      { AUTH_JWT_SECRET: 'x'.repeat(32), AUTH_JWKS_URL: 'https://a/b' },
      'AUTH_JWT_SECRET and AUTH_JWKS_URL',
    ],
  ])('refuses %s', (_name, env, start) => {
    expect(problemsOf(env)).toEqual([expect.stringMatching(new RegExp(`^${start.replaceAll(/[()]/g, '\\$&')}`))]);
  });
  it('takes a block longer than the claim limit and the shutdown limit: waiting reads are ended at once', () => {
    expect(problemsOf({ CONSUMER_BLOCK_MS: '60000' })).toEqual([]);
  });
});

it('names every bad setting at once', () => {
  const problems = problemsOf({
    PORT: 'abc',
    DB_POOL_SIZE: '0',
    REDIS_URL: '',
    LOG_LEVEL: 'x',
    SHUTDOWN_TIMEOUT_MS: '600',
  });
  expect(problems.map((problem) => problem.split(' ')[0]).sort()).toEqual([
    'DB_POOL_SIZE',
    'LOG_LEVEL',
    'PORT',
    'REDIS_URL',
    'SHUTDOWN_TIMEOUT_MS',
  ]);
});

it('has a default for every setting in development', () => {
  const { settings, warnings, effective } = settingsOf({});
  expect(settings).toMatchObject({
    mode: 'development',
    http: { host: '127.0.0.1', port: 3000, requestTimeoutMs: 1500 },
    apiProcesses: 1,
    redis: { url: 'redis://127.0.0.1:6379', keyPrefix: '' },
    stream: { name: 'stream.orders', group: 'g1', partitions: 1 },
    consumer: { enabled: true, batchSize: 1000, blockMs: 2000, claimMinIdleMs: 30_000, maxDeliveries: 5 },
    admission: { durability: 'local', maxBacklog: 1_000_000, maxInFlight: 10_000 },
    hmdp: { enabled: false },
    shutdownTimeoutMs: 10_000,
    logLevel: 'info',
  });
  expect(settings.auth.jwtSecret?.length).toBeGreaterThanOrEqual(32);
  expect(warnings).toEqual([expect.stringContaining('AUTH_JWT_SECRET')]);
  expect(new Set(effective.map(({ source }) => source))).toEqual(new Set(['default']));
});

describe('production', () => {
  it('needs both stores and a way to check tokens, and names all that is missing', () => {
    expect(problemsOf({ NODE_ENV: 'production' })).toEqual([
      'REDIS_URL, REDIS_CLUSTER_NODES or REDIS_SENTINELS must be set in production',
      'DATABASE_URL must be set in production',
      'AUTH_JWT_SECRET (32 to 4096 bytes) or AUTH_JWKS_URL must be set in production',
    ]);
  });
  it('listens on every address', () => {
    expect(settingsOf(production).settings.http.host).toBe('0.0.0.0');
  });
  it('refuses a secret that can be guessed, where development only warns', () => {
    expect(problemsOf({ ...production, AUTH_JWT_SECRET: 'x'.repeat(31) })).toEqual([
      'AUTH_JWT_SECRET must be 32 to 4096 bytes long in production',
    ]);
    expect(settingsOf({ AUTH_JWT_SECRET: 'x' }).warnings).toEqual([expect.stringContaining('shorter than 32 bytes')]);
  });
  it('asks a process that checks no tokens for none', () => {
    const { AUTH_JWT_SECRET: _, ...env } = production;
    expect(settingsOf(env, false).settings.auth).toEqual({ jwtSecret: undefined, jwksUrl: undefined });
  });
});

describe('secrets', () => {
  const secret = randomBytes(12).toString('hex');
  it('appear in no problem, warning or description', () => {
    const environments: Environment[] = [
      { AUTH_JWT_SECRET: secret, PORT: 'x' },
      { AUTH_JWT_SECRET: secret.repeat(400) },
      { REDIS_URL: `http://:${secret}@h` },
      { REDIS_URL: `redis://:${secret}@h:99999` },
      { DATABASE_URL: `postgres://u:${secret}@h` },
      { DATABASE_URL: secret },
      { REDIS_PASSWORD: secret },
      {
        REDIS_SENTINELS: 'a:1',
        REDIS_MASTER_NAME: 'm',
        REDIS_PASSWORD: secret,
        REDIS_SENTINEL_PASSWORD: secret,
        AUTH_JWT_SECRET: 'x',
      },
      {
        DATABASE_URL: `postgres://u:${secret}@h/d?password=${secret}`,
        REDIS_URL: `redis://u:${secret}@h`,
        AUTH_JWT_SECRET: secret,
      },
    ];
    for (const env of environments) {
      const result = readSettings(env);
      const told = result.ok ? [...result.warnings, ...describeSettings(result.effective)] : result.problems;
      expect(told.join('\n')).not.toContain(secret);
    }
  });
});

it('says of every effective setting where it comes from', () => {
  const { effective } = settingsOf({ PORT: '4000', DATABASE_URL: 'postgres://u:p@h:5433/d' });
  expect(effective).toContainEqual({ name: 'PORT', value: '4000', source: 'env' });
  expect(effective).toContainEqual({ name: 'DATABASE_URL', value: 'postgres://***@h:5433/d', source: 'env' });
  expect(effective).toContainEqual({ name: 'MAX_DELIVERIES', value: '5', source: 'default' });
  expect(describeSettings(effective)[1]).toMatch(/^PORT +4000 \(env\)$/);
});

it('reads cluster nodes, also with IPv6 hosts', () => {
  expect(settingsOf({ REDIS_CLUSTER_NODES: 'a:7000,[::1]:7001' }).settings.redis).toMatchObject({
    url: undefined,
    clusterNodes: [
      { host: 'a', port: 7000 },
      { host: '::1', port: 7001 },
    ],
  });
});

it('reads sentinels, credentials and encryption', () => {
  const { redis } = settingsOf({
    REDIS_SENTINELS: 'a:26379,b:26379',
    REDIS_MASTER_NAME: 'sales',
    REDIS_USERNAME: 'seckill',
    REDIS_PASSWORD: 'p',
    REDIS_SENTINEL_PASSWORD: 'q',
    REDIS_TLS: 'true',
    REDIS_TLS_CA: CERTIFICATE,
  }).settings;
  expect(redis).toMatchObject({
    url: undefined,
    clusterNodes: undefined,
    sentinel: {
      nodes: [
        { host: 'a', port: 26_379 },
        { host: 'b', port: 26_379 },
      ],
      masterName: 'sales',
      credentials: { username: undefined, password: 'q' },
    },
    credentials: { username: 'seckill', password: 'p' },
    tls: true,
  });
  expect(redis.tlsCa).toContain('BEGIN CERTIFICATE');
});

it('never throws, whatever the environment holds', () => {
  const names = [
    'PORT',
    'HOST',
    'REDIS_URL',
    'REDIS_CLUSTER_NODES',
    'DATABASE_URL',
    'AUTH_JWT_SECRET',
    'AUTH_JWKS_URL',
    'ORDER_STREAM',
    'CONSUMER_ENABLED',
  ];
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom(...names), fc.string({ unit: 'binary' })), (env) => {
      const result = readSettings(env);
      if (!result.ok) expect(result.problems.length).toBeGreaterThan(0);
    }),
  );
});
