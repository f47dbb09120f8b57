import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import pg from 'pg';
import { afterEach, beforeAll, afterAll, describe, expect, it, vi } from 'vitest';
import { createTestDatabase } from '../../../test/support/services.js';
import { createDatabase, Database, DatabaseUnavailableError, TransactionRolledBackError } from './index.js';
import { MIGRATIONS } from './migrations/index.js';

let home: { url: string; destroy: () => Promise<void> };
let admin: pg.Client;
const opened: Database[] = [];

beforeAll(async () => {
  home = await createTestDatabase();
  admin = new pg.Client({ connectionString: home.url });
  await admin.connect();
});

afterEach(async () => {
  await Promise.all(opened.splice(0).map((database) => database.onApplicationShutdown()));
  vi.restoreAllMocks();
});

afterAll(async () => {
  await admin.end();
  await home.destroy();
});

function open(url = home.url, { poolSize = 2, claimMinIdleMs = 30_000 } = {}): Database {
  const database = createDatabase({ database: { url, poolSize }, consumer: { claimMinIdleMs } });
  opened.push(database);
  return database;
}

async function ready(database: Database): Promise<Database> {
  await database.whenReady(15_000);
  return database;
}

/** The sessions of the product in this file's database. */
async function sessions(state: string): Promise<number> {
  const answer = await admin.query(
    `SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'flash-sale' AND state LIKE $1`,
    [state],
  );
  return answer.rowCount ?? 0;
}

/** A link to PostgreSQL that can be turned into a black hole: it takes everything and passes nothing on. */
class Link {
  private dark = false;
  private readonly sockets = new Set<Socket>();
  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  static async to(url: string): Promise<Link> {
    const target = new URL(url);
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const near = new URL(url);
    near.port = String((server.address() as AddressInfo).port);
    const link = new Link(server, near.href);
    server.on('connection', (client) => link.join(client, Number(target.port)));
    return link;
  }

  private join(client: Socket, port: number): void {
    this.sockets.add(client);
    client.on('error', () => undefined).on('close', () => this.sockets.delete(client));
    if (this.dark) return;
    const far = connect(port, '127.0.0.1').on('error', () => undefined);
    this.sockets.add(far);
    client.on('data', (data) => this.dark || far.write(data)).on('close', () => far.destroy());
    far.on('data', (data) => this.dark || client.write(data)).on('close', () => client.destroy());
  }

  swallowEverything(): void {
    this.dark = true;
  }

  passAgain(): void {
    this.dark = false;
  }

  close(): void {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
  }
}

describe('connecting', () => {
  it('sets up the schema once when three instances start at once on an empty database, and changes nothing later', async () => {
    const empty = await createTestDatabase();
    const instances = [open(empty.url), open(empty.url), open(empty.url)];
    await Promise.all(instances.map(ready));
    const [first] = instances as [Database];
    const schema = (): Promise<unknown[]> =>
      first.query(`SELECT table_name, column_name, data_type, column_default, is_nullable FROM information_schema.columns
        WHERE table_schema = 'public' ORDER BY 1, 2`);
    const before = await schema();
    expect(before.length).toBeGreaterThan(50);
    const runs = (): Promise<unknown[]> => first.query('SELECT id, name FROM tb_schema_migration ORDER BY id');
    const migrations = await runs();
    expect(migrations).toHaveLength(MIGRATIONS.length);
    await Promise.all([open(empty.url), open(empty.url), open(empty.url)].map(ready));
    expect(await schema()).toEqual(before);
    expect(await runs()).toEqual(migrations);
    await Promise.all(opened.splice(0).map((database) => database.onApplicationShutdown()));
    await empty.destroy();
  });

  it('starts without a database, says why without the password, and becomes ready by itself', async () => {
    const missing = new URL(home.url);
    missing.pathname = '/t_comes_later';
    const lines: string[] = [];
    vi.spyOn(process.stdout, 'write').mockImplementation((line) => lines.push(String(line)) > 0);
    vi.spyOn(process.stderr, 'write').mockImplementation((line) => lines.push(String(line)) > 0);
    const database = open(missing.href);
    await vi.waitFor(() => expect(lines.join('')).toContain('t_comes_later'));
    expect(database.isReady()).toBe(false);
    expect(() => database.manager).toThrow(DatabaseUnavailableError);
    await expect(database.query('SELECT 1')).rejects.toMatchObject({
      code: 'DATABASE_UNAVAILABLE',
      message: expect.stringContaining('does not exist') as string,
    });
    await admin.query('CREATE DATABASE t_comes_later');
    await database.whenReady(15_000);
    expect(await database.query<{ one: number }>('SELECT 1 AS one')).toEqual([{ one: 1 }]);
    const text = lines.join('');
    expect(text).toContain('SQLSTATE 3D000');
    expect(text).not.toContain(`:${missing.password}@`);
    await database.onApplicationShutdown();
    await admin.query('DROP DATABASE t_comes_later WITH (FORCE)');
  });

  it('gives limits to every session that end before a peer may claim the work', async () => {
    const database = await ready(open(home.url, { claimMinIdleMs: 3_000 }));
    const rows = await database.query<{ name: string; setting: string }>(
      `SELECT name, setting FROM pg_settings WHERE name IN
        ('lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout', 'tcp_keepalives_idle') ORDER BY name`,
    );
    expect(Object.fromEntries(rows.map((row) => [row.name, Number(row.setting)]))).toEqual({
      idle_in_transaction_session_timeout: 1_000,
      lock_timeout: 500,
      statement_timeout: 1_000,
      tcp_keepalives_idle: 15,
    });
  });
});

describe('trouble with the connection', () => {
  it('survives that idle connections are ended by the server', async () => {
    const database = await ready(open());
    await Promise.all([database.query('SELECT 1'), database.query('SELECT 1')]);
    for (let round = 0; round < 3; round += 1) {
      await admin.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'flash-sale'`);
      await vi.waitFor(async () => expect(await database.query('SELECT 1')).toHaveLength(1));
    }
  });

  it('gives work whose connection is ended in mid-transaction a passing error, and goes on', async () => {
    const database = await ready(open());
    const work = database.transaction(async (_manager, session) => {
      const [row] = await session.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
      await admin.query('SELECT pg_terminate_backend($1)', [row?.pid]);
      await session.query('SELECT 1');
    });
    await expect(work).rejects.toBeInstanceOf(DatabaseUnavailableError);
    await vi.waitFor(async () => expect(await database.query('SELECT 1')).toHaveLength(1));
  });

  it('ends a query on a black-holed link in bounded time, is away, fails fast, and comes back by itself', async () => {
    const link = await Link.to(home.url);
    const database = await ready(open(link.url, { claimMinIdleMs: 1_500 }));
    await Promise.all([database.query('SELECT 1'), database.query('SELECT 1')]);
    link.swallowEverything();
    await expect(database.query('SELECT 1')).rejects.toBeInstanceOf(DatabaseUnavailableError);
    await vi.waitFor(() => expect(database.isReady()).toBe(false), 10_000);
    await expect(database.transaction(() => Promise.resolve())).rejects.toThrow('the database is away');
    await expect(database.ping(100)).rejects.toBeInstanceOf(DatabaseUnavailableError);
    link.passAgain();
    await database.whenReady(15_000);
    await database.ping(5_000);
    await database.onApplicationShutdown();
    link.close();
  });

  it('says that the outcome is unknown where COMMIT is not answered, and only there', async () => {
    const link = await Link.to(home.url);
    const database = await ready(open(link.url, { claimMinIdleMs: 1_500 }));
    const unanswered = database.transaction(async (_manager, session) => {
      await session.query('SELECT 1');
      link.swallowEverything();
    });
    await expect(unanswered).rejects.toMatchObject({ name: 'CommitUnknownError', mayHaveHadEffect: true });
    link.passAgain();
    await database.whenReady(15_000);
    const before = database.transaction(async (_manager, session) => {
      link.swallowEverything();
      await session.query('SELECT 1');
    });
    await expect(before).rejects.toMatchObject({ name: 'DatabaseUnavailableError' });
    link.passAgain();
    await database.onApplicationShutdown();
    link.close();
  });

  it('answers a ping late on a black-holed link, and closes in bounded time there', async () => {
    const link = await Link.to(home.url);
    const database = await ready(open(link.url));
    await database.ping(5_000);
    link.swallowEverything();
    await expect(database.ping(50)).rejects.toThrow('did not answer within 50 ms');
    await database.onApplicationShutdown();
    link.close();
  });
});

describe('the pool', () => {
  it('works with a single connection, for many at once, and answers a ping meanwhile', async () => {
    const database = await ready(open(home.url, { poolSize: 1 }));
    const work = Array.from({ length: 50 }, (_, index) =>
      database.transaction(async (manager, session) => {
        const [row] = await session.query<{ value: number }>('SELECT $1::integer AS value', [index]);
        await manager.query('SELECT 1');
        return row?.value;
      }),
    );
    await database.ping(5_000);
    expect(await Promise.all(work)).toEqual(Array.from({ length: 50 }, (_, index) => index));
  });

  it('is not pinged to death: busy connections that are answered count as an answer', async () => {
    const database = await ready(open(home.url, { poolSize: 1 }));
    let busy = true;
    const work = database.transaction(async (_manager, session) => {
      while (busy) await session.query('SELECT 1');
    });
    await database.ping(100);
    busy = false;
    await work;
  });

  it('bounds the wait for a connection, and calls it passing', async () => {
    const database = await ready(open(home.url, { poolSize: 1 }));
    let finish: () => void = () => undefined;
    const held = database.transaction(() => new Promise<void>((resolve) => (finish = resolve)));
    await expect(database.query('SELECT 1')).rejects.toBeInstanceOf(DatabaseUnavailableError);
    finish();
    await held;
    expect(await database.query('SELECT 1')).toHaveLength(1);
  });

  it('gives connections back after failures, with no session left in a transaction', async () => {
    const database = await ready(open(home.url, { poolSize: 2 }));
    const failures = await Promise.allSettled(
      Array.from({ length: 50 }, () => database.transaction((_manager, session) => session.query('SELECT 1 / 0'))),
    );
    expect(failures.every((failure) => failure.status === 'rejected')).toBe(true);
    for (let index = 0; index < 10; index += 1) expect(await database.query('SELECT 1')).toHaveLength(1);
    expect(await sessions('idle in transaction%')).toBe(0);
  });
});

describe('transaction', () => {
  it('reports a commit only where the server committed: a swallowed error is told', async () => {
    const database = await ready(open());
    const work = database.transaction(async (_manager, session) => {
      await session.query('INSERT INTO tb_partition (partition_id) VALUES (77)');
      await session.query('SELECT 1 / 0').catch(() => undefined);
      return 'stored';
    });
    await expect(work).rejects.toBeInstanceOf(TransactionRolledBackError);
    expect(await database.query('SELECT FROM tb_partition WHERE partition_id = 77')).toHaveLength(0);
  });

  it('rolls everything back when the work throws, and gives the thrown value on', async () => {
    const database = await ready(open());
    const reason = new Error('changed my mind');
    await expect(
      database.transaction(async (manager, session) => {
        await session.query('INSERT INTO tb_partition (partition_id) VALUES (78)');
        await manager.query('INSERT INTO tb_partition (partition_id) VALUES (79)');
        throw reason;
      }),
    ).rejects.toBe(reason);
    expect(await database.query('SELECT FROM tb_partition WHERE partition_id IN (78, 79)')).toHaveLength(0);
  });

  it('gives the driver error of refused data on, with its code', async () => {
    const database = await ready(open());
    await expect(
      database.transaction((_manager, session) => session.query('INSERT INTO tb_partition (partition_id) VALUES (-1)')),
    ).rejects.toMatchObject({ code: '23514' });
  });

  it('runs the opening under a snapshot of its own: what committed while it waited is seen', async () => {
    const database = await ready(open());
    await admin.query('SELECT pg_advisory_lock(1, 1)');
    const seen = database.transaction(
      (_manager, session) => session.query('SELECT FROM tb_partition WHERE partition_id = 80'),
      { opening: 'SELECT pg_advisory_xact_lock(1, 1)' },
    );
    await vi.waitFor(async () =>
      expect((await admin.query("SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")).rowCount).toBe(1),
    );
    await admin.query('INSERT INTO tb_partition (partition_id) VALUES (80)');
    await admin.query('SELECT pg_advisory_unlock(1, 1)');
    expect(await seen).toHaveLength(1);
  });
});

describe('the tables', () => {
  it('need only the usual columns, and set the units to the stock', async () => {
    await ready(open());
    await admin.query(
      "INSERT INTO tb_voucher (id, shop_id, title, pay_value, actual_value) VALUES (5, 1, 'A', 100, 200)",
    );
    await admin.query(
      'INSERT INTO tb_seckill_voucher (voucher_id, stock, begin_time, end_time) VALUES (5, 7, now(), now())',
    );
    await admin.query('INSERT INTO tb_voucher_order (id, user_id, voucher_id) VALUES (1, 2, 5)');
    const { rows } = await admin.query(
      'SELECT units, units_version, partition_id FROM tb_seckill_voucher WHERE voucher_id = 5',
    );
    expect(rows).toEqual([{ units: 7, units_version: '1', partition_id: 0 }]);
  });

  it('refuse a negative stock, a second active order of one buyer, and an equal id', async () => {
    await expect(admin.query('UPDATE tb_seckill_voucher SET stock = -1 WHERE voucher_id = 5')).rejects.toMatchObject({
      code: '23514',
    });
    await expect(
      admin.query('INSERT INTO tb_voucher_order (id, user_id, voucher_id) VALUES (2, 2, 5)'),
    ).rejects.toMatchObject({ constraint: 'ux_voucher_order_active' });
    await expect(
      admin.query('INSERT INTO tb_voucher_order (id, user_id, voucher_id) VALUES (1, 3, 5)'),
    ).rejects.toMatchObject({ constraint: 'tb_voucher_order_pkey' });
    await admin.query('UPDATE tb_voucher_order SET status = 4 WHERE id = 1');
    await admin.query('INSERT INTO tb_voucher_order (id, user_id, voucher_id) VALUES (2, 2, 5)');
  });

  it('give new vouchers ids that step over those given by hand', async () => {
    await admin.query(
      "INSERT INTO tb_voucher (id, title, pay_value, actual_value) VALUES (1, 'B', 0, 1), (2, 'C', 0, 1)",
    );
    const { rows } = await admin.query<{ id: string }>(
      "INSERT INTO tb_voucher (title, pay_value, actual_value) VALUES ('D', 0, 1) RETURNING id",
    );
    expect(rows).toEqual([{ id: '3' }]);
  });

  it('take the flash sale away with its voucher', async () => {
    await admin.query('DELETE FROM tb_voucher WHERE id = 5');
    expect((await admin.query('SELECT FROM tb_seckill_voucher WHERE voucher_id = 5')).rowCount).toBe(0);
  });
});
