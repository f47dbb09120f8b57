import { createHmac } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { Test } from '@nestjs/testing';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AuthModule } from '#auth';
import { ConfigModule } from '#config';
import { Database } from '#database';
import { createHttpServer, HttpModule } from '#http';
import { RedisConnections } from '#redis';
import { DrainFixture } from '../../../test/support/drain-fixture.js';
import { DeadLettersModule } from './dead-letters.module.js';

let drain: DrainFixture;
let app: NestFastifyApplication;
let url: string;

function token(claims: Record<string, unknown>): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const head = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ exp: Math.floor(Date.now() / 1_000) + 600, ...claims })}`;
  return `${head}.${createHmac('sha256', drain.settings.auth.jwtSecret ?? '')
    .update(head)
    .digest('base64url')}`;
}

async function call(method: string, path: string, claims?: Record<string, unknown>) {
  const headers = claims === undefined ? {} : { authorization: `Bearer ${token(claims)}` };
  const answer = await fetch(`${url}/v1/admin/dead-letters${path}`, { method, headers });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}
const admin = { sub: '1', role: 'admin' };

beforeAll(async () => {
  drain = await DrainFixture.start();
  const module = await Test.createTestingModule({
    imports: [ConfigModule.forRoot(drain.settings), HttpModule, AuthModule, DeadLettersModule],
  }).compile();
  app = module.createNestApplication<NestFastifyApplication>(createHttpServer().adapter, { bodyParser: false });
  await app.listen(0, '127.0.0.1');
  await app.get(Database).whenReady(20_000);
  await app.get(RedisConnections).whenReady(5_000);
  url = `http://127.0.0.1:${(app.getHttpServer().address() as AddressInfo).port}`;
});
afterAll(async () => {
  await app.close();
  await drain.destroy();
});

describe('the calls of dead letters', () => {
  it('are for administrators only', async () => {
    for (const [method, path] of [
      ['GET', ''],
      ['POST', '/0-1-1/redrive'],
      ['POST', '/0-1-1/discard'],
    ] as const) {
      expect(await call(method, path)).toMatchObject({ status: 401, body: { code: 'UNAUTHENTICATED' } });
      expect(await call(method, path, { sub: '7' })).toMatchObject({ status: 403, body: { code: 'FORBIDDEN' } });
    }
  });

  it('answer 404 for an unknown letter and 400 for what is no id of one', async () => {
    for (const what of ['redrive', 'discard']) {
      expect(await call('POST', `/0-1-1/${what}`, admin)).toMatchObject({
        status: 404,
        body: { code: 'DEAD_LETTER_NOT_FOUND' },
      });
      expect(await call('POST', `/4000-1-1/${what}`, admin)).toMatchObject({ status: 404 });
      for (const id of ['1-1', '0-01-1', '-1-1-1', 'x', '0-1-99999999999999999999', '99999999999-1-1', '0-1-1-1']) {
        expect(await call('POST', `/${id}/${what}`, admin), id).toMatchObject({
          status: 400,
          body: { code: 'INVALID_ARGUMENT' },
        });
      }
    }
    expect(await call('GET', '?limit=0', admin)).toMatchObject({ status: 400 });
    expect(await call('GET', '?cursor=x', admin)).toMatchObject({ status: 400 });
    const last = '0-18446744073709551615-18446744073709551615';
    expect(await call('GET', `?cursor=${last}`, admin)).toEqual({ status: 200, body: { items: [] } });
    expect(await call('POST', `/${last}/discard`, admin)).toMatchObject({ status: 404 });
  });

  it('answer 503 while the list is of another type: the reconciliation drops it', async () => {
    const key = drain.keys.deadLetters(0);
    await drain.redis.set(key, 'x');
    try {
      for (const [method, path] of [
        ['GET', ''],
        ['POST', '/0-1-1/redrive'],
        ['POST', '/0-1-1/discard'],
      ] as const) {
        expect(await call(method, path, admin)).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE' } });
      }
    } finally {
      await drain.redis.del(key);
    }
  });

  it('list a letter as the contract says, refuse to redrive what is no order, and discard it once', async () => {
    expect(await call('GET', '', admin)).toEqual({ status: 200, body: { items: [] } });
    await drain.redis.xadd(drain.stream, '*', 'userId', 'abc');
    await drain.consumer.runOnce(0);
    const { body } = await call('GET', '?limit=10', admin);
    const [letter] = body['items'] as Record<string, unknown>[];
    expect(letter).toEqual({
      id: expect.stringMatching(/^0-\d+-\d+$/) as unknown,
      partition: 0,
      cause: expect.stringMatching(/^MALFORMED/) as unknown,
      fields: { userId: 'abc' },
      deliveries: 1,
      firstSeenTime: expect.stringMatching(/Z$/) as unknown,
    });
    const id = String(letter?.['id']);
    expect(await call('POST', `/${id}/redrive`, admin)).toMatchObject({
      status: 409,
      body: { code: 'DEAD_LETTER_NOT_REDRIVABLE' },
    });
    expect(await call('POST', `/${id}/discard`, admin)).toEqual({ status: 200, body: { id, outcome: 'DISCARDED' } });
    expect(await call('POST', `/${id}/discard`, admin)).toMatchObject({ status: 404 });
    expect(await call('GET', '', admin)).toEqual({ status: 200, body: { items: [] } });
  });
});
