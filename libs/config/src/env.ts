import { randomBytes } from 'node:crypto';
import type { z } from 'zod';
import { contradictions } from './contradictions.js';
import type { EffectiveSetting } from './describe-settings.js';
import { maskAddress } from './describe-settings.js';
import {
  address,
  certificateFile,
  flag,
  hostList,
  hostName,
  keyName,
  keyPrefix,
  oneOf,
  secret,
  wholeNumber,
} from './setting-schemas.js';
import type { RedisCredentials, RedisNode, RedisSettings, Settings } from './settings.js';

/** Where settings come from: `process.env`, or a plain object in tests. */
export type Environment = Readonly<Record<string, string | undefined>>;

export interface ReadOptions {
  /** False for a process that checks no tokens (the worker): the AUTH_ settings may then be missing. Default true. */
  readonly authRequired?: boolean;
  /** The port where PORT is not set. Default 3000. */
  readonly defaultPort?: number;
}

export type SettingsResult =
  | {
      readonly ok: true;
      readonly settings: Settings;
      readonly warnings: readonly string[];
      readonly effective: readonly EffectiveSetting[];
    }
  | { readonly ok: false; readonly problems: readonly string[] };

const WEAK_SECRET_BYTES = 32;
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const;

const namesDatabase = (url: URL): string | undefined =>
  url.pathname.length > 1 ? undefined : 'must name a database, like postgres://user:password@host:5432/name';
const namesRedisDatabase = (url: URL): string | undefined =>
  /^(?:\/\d{0,5})?$/.test(url.pathname) ? undefined : 'must end with the host, the port or /<database number>';

/** Every setting of the product: its check. Units and ranges stand in the messages that the checks give. */
const SCHEMAS = {
  NODE_ENV: oneOf(['production', 'development', 'test']),
  PORT: wholeNumber({ unit: 'TCP ports', min: 1, max: 65_535 }),
  HOST: hostName(),
  API_PROCESSES: wholeNumber({ unit: 'processes', min: 1, max: 64 }),
  REDIS_URL: address(['redis:', 'rediss:'], 'redis://127.0.0.1:6379', namesRedisDatabase),
  REDIS_CLUSTER_NODES: hostList(),
  REDIS_SENTINELS: hostList(),
  REDIS_MASTER_NAME: keyName(200),
  REDIS_USERNAME: keyName(200),
  REDIS_PASSWORD: secret(1, 4096),
  REDIS_SENTINEL_USERNAME: keyName(200),
  REDIS_SENTINEL_PASSWORD: secret(1, 4096),
  REDIS_TLS: flag(),
  REDIS_TLS_CA: certificateFile(),
  REDIS_KEY_PREFIX: keyPrefix(100),
  DATABASE_URL: address(['postgres:', 'postgresql:'], 'postgres://user:password@127.0.0.1:5432/seckill', namesDatabase),
  DB_POOL_SIZE: wholeNumber({ unit: 'connections', min: 1, max: 1000 }),
  AUTH_JWT_SECRET: secret(1, 4096),
  AUTH_JWKS_URL: address(['http:', 'https:'], 'https://issuer.example/.well-known/jwks.json'),
  ORDER_STREAM: keyName(200),
  ORDER_GROUP: keyName(200),
  STREAM_PARTITIONS: wholeNumber({ unit: 'partitions', min: 1, max: 256 }),
  CONSUMER_ENABLED: flag(),
  // Room for the number of the process, which is put behind it where there are several.
  CONSUMER_NAME: keyName(190),
  CONSUMER_BATCH_SIZE: wholeNumber({ unit: 'entries', min: 1, max: 10_000 }),
  CONSUMER_BLOCK_MS: wholeNumber({ unit: 'milliseconds', min: 1, max: 300_000 }),
  CLAIM_MIN_IDLE_MS: wholeNumber({ unit: 'milliseconds', min: 2000, max: 3_600_000 }),
  MAX_DELIVERIES: wholeNumber({ unit: 'deliveries', min: 1, max: 1000 }),
  MAX_BACKLOG: wholeNumber({ unit: 'entries', min: 1, max: 100_000_000 }),
  MAX_IN_FLIGHT: wholeNumber({ unit: 'purchases', min: 1, max: 1_000_000 }),
  ADMISSION_DURABILITY: oneOf(['local', 'replica']),
  HMDP_COMPAT: flag(),
  REQUEST_TIMEOUT_MS: wholeNumber({ unit: 'milliseconds', min: 100, max: 60_000 }),
  SHUTDOWN_TIMEOUT_MS: wholeNumber({ unit: 'milliseconds', min: 500, max: 600_000 }),
  LOG_LEVEL: oneOf(LOG_LEVELS),
} as const;

export type SettingName = keyof typeof SCHEMAS;
/** The settings that were given, each checked and in its own type. */
export type GivenSettings = { readonly [N in SettingName]?: z.output<(typeof SCHEMAS)[N]> };

/**
 * Checks every setting of the environment at once. Problems and warnings each begin with the setting's name and never repeat a secret or an
 * address. Never throws.
 */
export function readSettings(
  env: Environment,
  { authRequired = true, defaultPort = 3000 }: ReadOptions = {},
): SettingsResult {
  const { given, problems } = checkEach(env);
  const wrong = new Set(problems.map((problem) => problem.split(' ', 1)[0]));
  const production = env['NODE_ENV'] === 'production';
  if (production) problems.push(...missingInProduction(env, authRequired));
  const settings = assemble(given, production, defaultPort);
  problems.push(
    ...contradictions(given, settings)
      .filter((found) => !found.about.some((name) => wrong.has(name)))
      .map((found) => found.message),
  );
  const { AUTH_JWT_SECRET: jwtSecret } = given;
  const isWeak = jwtSecret !== undefined && Buffer.byteLength(jwtSecret) < WEAK_SECRET_BYTES;
  if (production && isWeak)
    problems.push(`AUTH_JWT_SECRET must be ${WEAK_SECRET_BYTES} to 4096 bytes long in production`);
  if (problems.length > 0) return { ok: false, problems };
  const warnings = isWeak ? [`AUTH_JWT_SECRET is shorter than ${WEAK_SECRET_BYTES} bytes: it can be guessed`] : [];
  if (authRequired && jwtSecret === undefined && given.AUTH_JWKS_URL === undefined)
    warnings.push('AUTH_JWT_SECRET is not set: a random one was made, tokens signed with it end with this process');
  return {
    ok: true,
    settings: authRequired ? withAuth(settings) : settings,
    warnings,
    effective: effectiveSettings(settings, given),
  };
}

/** Reads the settings of this process; where any is bad, names them all on stderr and ends the process with code 1. */
export function loadSettingsOrExit(options: ReadOptions = {}): Extract<SettingsResult, { ok: true }> {
  const result = readSettings(process.env, options);
  if (result.ok) return result;
  process.stderr.write(
    `Bad settings (${result.problems.length}):\n${result.problems.map((line) => `  ${line}\n`).join('')}`,
  );
  process.exit(1);
}

function checkEach(env: Environment): { given: GivenSettings; problems: string[] } {
  const given: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const [name, schema] of Object.entries(SCHEMAS)) {
    const text = env[name];
    if (text === undefined) continue;
    const checked = schema.safeParse(text);
    if (checked.success) given[name] = checked.data;
    else problems.push(...checked.error.issues.map((issue) => `${name} ${issue.message}`));
  }
  return { given, problems };
}

function missingInProduction(env: Environment, authRequired: boolean): string[] {
  const problems: string[] = [];
  if (['REDIS_URL', 'REDIS_CLUSTER_NODES', 'REDIS_SENTINELS'].every((name) => env[name] === undefined))
    problems.push('REDIS_URL, REDIS_CLUSTER_NODES or REDIS_SENTINELS must be set in production');
  if (env['DATABASE_URL'] === undefined) problems.push('DATABASE_URL must be set in production');
  if (authRequired && env['AUTH_JWT_SECRET'] === undefined && env['AUTH_JWKS_URL'] === undefined)
    problems.push('AUTH_JWT_SECRET (32 to 4096 bytes) or AUTH_JWKS_URL must be set in production');
  return problems;
}

function assemble(given: GivenSettings, production: boolean, defaultPort: number): Settings {
  return {
    mode: production ? 'production' : 'development',
    http: {
      host: given.HOST ?? (production ? '0.0.0.0' : '127.0.0.1'),
      port: given.PORT ?? defaultPort,
      requestTimeoutMs: given.REQUEST_TIMEOUT_MS ?? 1500,
    },
    apiProcesses: given.API_PROCESSES ?? 1,
    redis: assembleRedis(given),
    database: {
      url: given.DATABASE_URL ?? 'postgres://postgres:postgres@127.0.0.1:5432/seckill',
      poolSize: given.DB_POOL_SIZE ?? 10,
    },
    auth: { jwtSecret: given.AUTH_JWT_SECRET, jwksUrl: given.AUTH_JWKS_URL },
    stream: {
      name: given.ORDER_STREAM ?? 'stream.orders',
      group: given.ORDER_GROUP ?? 'g1',
      partitions: given.STREAM_PARTITIONS ?? 1,
    },
    consumer: {
      enabled: given.CONSUMER_ENABLED ?? true,
      name: given.CONSUMER_NAME,
      batchSize: given.CONSUMER_BATCH_SIZE ?? 1000,
      blockMs: given.CONSUMER_BLOCK_MS ?? 2000,
      claimMinIdleMs: given.CLAIM_MIN_IDLE_MS ?? 30_000,
      maxDeliveries: given.MAX_DELIVERIES ?? 5,
    },
    admission: {
      durability: given.ADMISSION_DURABILITY ?? 'local',
      maxBacklog: given.MAX_BACKLOG ?? 1_000_000,
      maxInFlight: given.MAX_IN_FLIGHT ?? 10_000,
    },
    hmdp: { enabled: given.HMDP_COMPAT ?? false },
    shutdownTimeoutMs: given.SHUTDOWN_TIMEOUT_MS ?? 10_000,
    logLevel: given.LOG_LEVEL ?? 'info',
  };
}

function assembleRedis(given: GivenSettings): RedisSettings {
  const clusterNodes = given.REDIS_CLUSTER_NODES;
  const sentinels = given.REDIS_SENTINELS;
  const single = clusterNodes === undefined && sentinels === undefined;
  return {
    url: single ? (given.REDIS_URL ?? 'redis://127.0.0.1:6379') : undefined,
    clusterNodes,
    sentinel: sentinels && {
      nodes: sentinels,
      masterName: given.REDIS_MASTER_NAME ?? '',
      credentials: credentials(given.REDIS_SENTINEL_USERNAME, given.REDIS_SENTINEL_PASSWORD),
    },
    credentials: credentials(given.REDIS_USERNAME, given.REDIS_PASSWORD),
    tls: given.REDIS_TLS ?? false,
    tlsCa: given.REDIS_TLS_CA?.pem,
    keyPrefix: given.REDIS_KEY_PREFIX ?? '',
  };
}

function credentials(username: string | undefined, password: string | undefined): RedisCredentials | undefined {
  return password === undefined ? undefined : { username, password };
}

function withAuth(settings: Settings): Settings {
  const { jwtSecret, jwksUrl } = settings.auth;
  if (jwtSecret !== undefined || jwksUrl !== undefined) return settings;
  return { ...settings, auth: { jwtSecret: randomBytes(32).toString('base64url'), jwksUrl: undefined } };
}

function effectiveSettings(settings: Settings, given: GivenSettings): EffectiveSetting[] {
  const { http, redis, database, auth, stream, consumer, admission } = settings;
  const values: Record<SettingName, string | number | boolean | undefined> = {
    NODE_ENV: settings.mode,
    PORT: http.port,
    HOST: http.host,
    API_PROCESSES: settings.apiProcesses,
    REDIS_URL: redis.url === undefined ? undefined : maskAddress(redis.url),
    REDIS_CLUSTER_NODES: nodeList(redis.clusterNodes),
    REDIS_SENTINELS: nodeList(redis.sentinel?.nodes),
    REDIS_MASTER_NAME: redis.sentinel?.masterName,
    REDIS_USERNAME: redis.credentials?.username,
    REDIS_PASSWORD: redis.credentials && '***',
    REDIS_SENTINEL_USERNAME: redis.sentinel?.credentials?.username,
    REDIS_SENTINEL_PASSWORD: redis.sentinel?.credentials && '***',
    REDIS_TLS: redis.url === undefined ? redis.tls : undefined,
    REDIS_TLS_CA: given.REDIS_TLS_CA?.path,
    REDIS_KEY_PREFIX: redis.keyPrefix,
    DATABASE_URL: maskAddress(database.url),
    DB_POOL_SIZE: database.poolSize,
    AUTH_JWT_SECRET: auth.jwtSecret === undefined ? undefined : '***',
    AUTH_JWKS_URL: auth.jwksUrl === undefined ? undefined : maskAddress(auth.jwksUrl),
    ORDER_STREAM: stream.name,
    ORDER_GROUP: stream.group,
    STREAM_PARTITIONS: stream.partitions,
    CONSUMER_ENABLED: consumer.enabled,
    CONSUMER_NAME: consumer.name,
    CONSUMER_BATCH_SIZE: consumer.batchSize,
    CONSUMER_BLOCK_MS: consumer.blockMs,
    CLAIM_MIN_IDLE_MS: consumer.claimMinIdleMs,
    MAX_DELIVERIES: consumer.maxDeliveries,
    MAX_BACKLOG: admission.maxBacklog,
    MAX_IN_FLIGHT: admission.maxInFlight,
    ADMISSION_DURABILITY: admission.durability,
    HMDP_COMPAT: settings.hmdp.enabled,
    REQUEST_TIMEOUT_MS: http.requestTimeoutMs,
    SHUTDOWN_TIMEOUT_MS: settings.shutdownTimeoutMs,
    LOG_LEVEL: settings.logLevel,
  };
  return (Object.keys(values) as SettingName[])
    .filter((name) => values[name] !== undefined)
    .map((name) => ({ name, value: String(values[name]), source: given[name] === undefined ? 'default' : 'env' }));
}

function nodeList(nodes: readonly RedisNode[] | undefined): string | undefined {
  return nodes?.map(({ host, port }) => `${host}:${port}`).join(',');
}
