import { Agent, request } from 'node:http';
import { Test } from '@nestjs/testing';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Redis } from 'ioredis';
import pg from 'pg';
import { AuthModule } from '#auth';
import { ConfigModule, readSettings } from '#config';
import { Database } from '#database';
import { createHttpServer, HttpModule } from '#http';
import { RedisConnections } from '#redis';
import { EpochRegister } from '#sale-register';
import { VoucherOrderModule } from '#voucher-order';
import { VouchersHttpModule } from '#vouchers';
import { createTestDatabase, TestRedis } from './services.js';
import { ADMIN, TEST_SECRET, tokenOf } from './tokens.js';

export { ADMIN, tokenOf };

const HOUR_MS = 3_600_000;

/** What a call of a test came to. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look at whatever was answered
  readonly json: any;
}

export interface CallOptions {
  readonly as?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A real Redis and a real PostgreSQL that several applications share, with an operator's own connections to both. */
export class SaleStores {
  private constructor(
    readonly redis: TestRedis,
    readonly databaseUrl: string,
    readonly sql: pg.Client,
    readonly commands: Redis,
    private readonly destroyDatabase: () => Promise<void>,
  ) {}

  static async open(): Promise<SaleStores> {
    const [redis, database] = await Promise.all([TestRedis.start(), createTestDatabase()]);
    const sql = new pg.Client({ connectionString: database.url });
    sql.on('error', () => undefined);
    await sql.connect();
    const commands = new Redis(redis.url);
    commands.on('error', () => undefined);
    return new SaleStores(redis, database.url, sql, commands, database.destroy);
  }

  async close(): Promise<void> {
    this.commands.disconnect();
    await this.sql.end();
    await this.redis.destroy();
    await this.destroyDatabase();
  }
}

/** The two rooms that sell, as one application without a consumer and without reconciliation: what they do is seen undisturbed. */
export class SaleApp {
  private readonly agent = new Agent({ keepAlive: true, maxSockets: 500 });

  private constructor(
    readonly app: NestFastifyApplication,
    private readonly url: string,
  ) {}

  static async start(stores: SaleStores, env: Record<string, string> = {}): Promise<SaleApp> {
    const read = readSettings({
      REDIS_URL: stores.redis.url,
      DATABASE_URL: stores.databaseUrl,
      AUTH_JWT_SECRET: TEST_SECRET,
      ...env,
    });
    if (!read.ok) throw new Error(read.problems.join('; '));
    const module = await Test.createTestingModule({
      imports: [ConfigModule.forRoot(read.settings), HttpModule, AuthModule, VouchersHttpModule, VoucherOrderModule],
    }).compile();
    const app = module.createNestApplication<NestFastifyApplication>(createHttpServer().adapter, { bodyParser: false });
    await app.listen(0, '127.0.0.1');
    const sale = new SaleApp(app, await app.getUrl());
    await sale.get(Database).whenReady(30_000);
    if (!(await sale.get(RedisConnections).whenReady(10_000))) throw new Error('Redis did not become ready');
    return sale;
  }

  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- the shape of Nest's own Type<T>
  get<T>(type: abstract new (...args: any[]) => T): T {
    return this.app.get<T>(type);
  }

  /** Opens the partition as a finished rebuild would. */
  async openPartition(partition = 0): Promise<void> {
    const epochs = this.get(EpochRegister);
    const state = await epochs.state(partition);
    if (state.kind === 'OPEN') return;
    const begun = await epochs.begin(partition, 'tests0000', state.kind === 'CLOSED' ? state.value : undefined);
    if (begun.kind !== 'BEGUN') throw new Error(`the partition cannot be closed for opening: ${begun.kind}`);
    const opened = await epochs.open(partition, begun.value, []);
    if (opened.kind !== 'OPENED') throw new Error(`the partition cannot be opened: ${opened.kind}`);
  }

  call(method: 'GET' | 'POST' | 'PATCH', path: string, options: CallOptions = {}): Promise<Answer> {
    const { as, body, headers } = options;
    const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body);
    return new Promise((resolve, reject) => {
      const sent = request(
        `${this.url}${path}`,
        {
          method,
          agent: this.agent,
          headers: {
            ...(as === undefined ? {} : { authorization: `Bearer ${as}` }),
            ...(text === undefined ? {} : { 'content-type': 'application/json' }),
            ...headers,
          },
        },
        (response) => {
          let received = '';
          response.setEncoding('utf8');
          response.on('data', (chunk: string) => (received += chunk));
          response.on('end', () => {
            const json: unknown = received.startsWith('{') ? JSON.parse(received) : undefined;
            resolve({ status: response.statusCode ?? 0, headers: response.headers, text: received, json });
          });
        },
      );
      sent.on('error', reject);
      sent.end(text);
    });
  }

  buy(voucherId: string, userId: string): Promise<Answer> {
    return this.call('POST', `/v1/vouchers/${voucherId}/orders`, { as: tokenOf(userId) });
  }

  /** Makes a voucher and answers its id. */
  async putOnSale(terms: Record<string, unknown> = {}): Promise<string> {
    const answer = await this.call('POST', '/v1/vouchers', { as: ADMIN, body: voucherTerms(terms) });
    if (answer.status !== 201) throw new Error(`not created: ${answer.status} ${answer.text}`);
    return (answer.json as { voucherId: string }).voucherId;
  }

  restock(voucherId: string, delta: number, headers: Record<string, string> = {}): Promise<Answer> {
    return this.call('PATCH', `/v1/vouchers/${voucherId}/stock`, { as: ADMIN, body: { delta }, headers });
  }

  async close(): Promise<void> {
    this.agent.destroy();
    await this.app.close();
  }
}

/** A body of POST /v1/vouchers that is on sale now. */
export function voucherTerms(more: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    shopId: '1',
    title: '100 for 80',
    payValue: 8_000,
    actualValue: 10_000,
    stock: 3,
    beginTime: new Date(Date.now() - 60_000).toISOString(),
    endTime: new Date(Date.now() + HOUR_MS).toISOString(),
    ...more,
  };
}
