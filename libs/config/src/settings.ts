/** Every setting of the product, checked. Made once from the environment by `readSettings`; the only shape in which settings travel. */
export interface Settings {
  /** `production` under `npm run start:prod` (NODE_ENV=production), else `development`. */
  readonly mode: 'production' | 'development';
  readonly http: { readonly host: string; readonly port: number; readonly requestTimeoutMs: number };
  /** API processes that share the port; with 1 the process that was started is the only one. A worker is always one process. */
  readonly apiProcesses: number;
  readonly redis: RedisSettings;
  readonly database: { readonly url: string; readonly poolSize: number };
  readonly auth: AuthSettings;
  readonly stream: StreamSettings;
  readonly consumer: ConsumerSettings;
  readonly admission: AdmissionSettings;
  /** Whether the API also answers hmdp's routes (HMDP_COMPAT). */
  readonly hmdp: { readonly enabled: boolean };
  readonly shutdownTimeoutMs: number;
  readonly logLevel: 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace';
}

export interface RedisNode {
  readonly host: string;
  readonly port: number;
}

/** One of three: a single node (`url`), a cluster (`clusterNodes`), or a primary that sentinels name (`sentinel`). */
export interface RedisSettings {
  /** Connection address of a single node, user and password included; undefined where one of the other two is given. */
  readonly url: string | undefined;
  readonly clusterNodes: readonly RedisNode[] | undefined;
  readonly sentinel?: SentinelSettings | undefined;
  /** Who we are to the nodes of a cluster, or to those that sentinels name. */
  readonly credentials?: RedisCredentials | undefined;
  /** Connections to cluster, sentinels and what they name are encrypted. A single node says it by rediss://. */
  readonly tls?: boolean;
  /** Certificates (PEM) of the authority that signs the servers' own; undefined: the system's authorities. */
  readonly tlsCa?: string | undefined;
  /** Put before every key of ours; empty by default. */
  readonly keyPrefix: string;
}

export interface RedisCredentials {
  /** Undefined: the default user. */
  readonly username: string | undefined;
  readonly password: string;
}

export interface SentinelSettings {
  readonly nodes: readonly RedisNode[];
  /** Under which the sentinels watch the primary. */
  readonly masterName: string;
  /** Who we are to the sentinels themselves, where they ask. */
  readonly credentials: RedisCredentials | undefined;
}

/** Exactly one of the two is set. */
export interface AuthSettings {
  readonly jwtSecret: string | undefined;
  readonly jwksUrl: string | undefined;
}

export interface StreamSettings {
  /** Stream name without prefix and hash tag, `stream.orders` by default. */
  readonly name: string;
  readonly group: string;
  /** How many partitions new vouchers are spread over. */
  readonly partitions: number;
}

export interface ConsumerSettings {
  readonly enabled: boolean;
  /** Undefined: a name unique per process is made. */
  readonly name: string | undefined;
  readonly batchSize: number;
  readonly blockMs: number;
  readonly claimMinIdleMs: number;
  readonly maxDeliveries: number;
}

export interface AdmissionSettings {
  readonly durability: 'local' | 'replica';
  /** Undelivered and pending entries per partition above which purchases are refused. */
  readonly maxBacklog: number;
  /** Purchases in hand per process above which further ones are refused. */
  readonly maxInFlight: number;
}

/** Injection token of the one `Settings` object. */
export const SETTINGS = Symbol('SETTINGS');
