import pg from 'pg';
import { expect, it } from 'vitest';
import { createTestDatabase, TestRedis } from './services.js';

it('starts a real Redis and makes a real database', async () => {
  const redis = await TestRedis.start();
  const database = await createTestDatabase();
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  expect((await client.query<{ one: number }>('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
  await client.end();
  await database.destroy();
  await redis.destroy();
});
