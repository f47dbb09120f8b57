import { createHmac, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Body, Controller, Get, Module, Post } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { IsString } from 'class-validator';
import { exportJWK, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { ConfigModule, readSettings } from '#config';
import { createHttpServer, HttpModule, IdParam } from '#http';
import { Param } from '@nestjs/common';
import { AuthModule, Buyer, CurrentUser, type Identity, Public, Roles, TokenVerifier } from './index.js';

const secret = 'a secret of the tests, long enough to be none in earnest';
const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const seconds = (): number => Math.floor(Date.now() / 1000);
/** A token as any issuer might make it; nothing in it is checked here. */
function token(claims: object, header: object = { alg: 'HS256', typ: 'JWT' }, key = secret, hash = 'sha256'): string {
  const head = `${encode(header)}.${encode({ exp: seconds() + 60, ...claims })}`;
  return `${head}.${createHmac(hash, key).update(head).digest('base64url')}`;
}

class Note {
  @IsString()
  text!: string;
}

@Controller('things')
class ThingController {
  @Get()
  @Public()
  list(): { items: never[] } {
    return { items: [] };
  }
  @Get('mine')
  mine(@CurrentUser() user: Identity): Identity {
    return user;
  }
  @Get('public-asks')
  @Public()
  wrong(@CurrentUser() user: Identity): Identity {
    return user;
  }
}
@Controller('admin')
@Roles('admin')
class AdminController {
  @Post(':noteId')
  write(@Param('noteId', IdParam) noteId: string, @Body() note: Note): object {
    return { noteId, ...note };
  }
  @Get('own')
  @Buyer()
  own(@CurrentUser() user: Identity): Identity {
    return user;
  }
  @Get('payments')
  @Roles('admin', 'payment')
  payments(@CurrentUser() user: Identity): Identity {
    return user;
  }
}

async function start(env: Record<string, string>): Promise<{ app: NestFastifyApplication; url: string }> {
  const result = readSettings(env);
  if (!result.ok) throw new Error(result.problems.join());
  @Module({
    imports: [ConfigModule.forRoot(result.settings), HttpModule, AuthModule],
    controllers: [ThingController, AdminController],
  })
  class TestModule {}
  const { adapter } = createHttpServer();
  const app = await NestFactory.create<NestFastifyApplication>(TestModule, adapter, {
    bodyParser: false,
    logger: false,
  });
  await app.listen(0, '127.0.0.1');
  return { app, url: `http://127.0.0.1:${(app.getHttpServer().address() as AddressInfo).port}` };
}

let app: NestFastifyApplication;
let url: string;
beforeAll(async () => {
  ({ app, url } = await start({ AUTH_JWT_SECRET: secret }));
});
afterAll(() => app.close());

const ask = (path: string, bearer?: string, init: RequestInit = {}) =>
  fetch(url + path, {
    ...init,
    headers: { ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }), ...(init.headers as object) },
  });
async function codeOf(answer: Promise<Response>): Promise<unknown> {
  const response = await answer;
  const body = (await response.json()) as { code?: string };
  return body.code ?? response.status;
}

describe('an identity', () => {
  it.each(['1', '9007199254740993', '9223372036854775807'])('is the subject %s, digit by digit', async (sub) => {
    expect(await (await ask('/things/mine', token({ sub }))).json()).toEqual({ userId: sub });
  });
  it('carries a known role; an unknown one counts as none', async () => {
    expect(await (await ask('/things/mine', token({ sub: '1', role: 'admin' }))).json()).toEqual({
      userId: '1',
      role: 'admin',
    });
    for (const role of ['root', ['admin'], 1, null, 'Admin', 'toString'])
      expect(await (await ask('/things/mine', token({ sub: '1', role }))).json()).toEqual({ userId: '1' });
  });
  it('is not there on a public route, and asking for it there is a defect', async () => {
    expect(await codeOf(ask('/things'))).toBe(200);
    expect(await codeOf(ask('/things', 'nonsense'))).toBe(200);
    expect(await codeOf(ask('/things/public-asks', token({ sub: '1' })))).toBe('INTERNAL');
  });
  it('takes the scheme in any case, and no other scheme', async () => {
    const bearer = token({ sub: '1' });
    expect((await ask('/things/mine', undefined, { headers: { authorization: `bearer ${bearer}` } })).status).toBe(200);
    for (const authorization of [bearer, `Basic ${bearer}`, 'Bearer', 'Bearer ', `Bearer ${bearer} x`])
      expect((await ask('/things/mine', undefined, { headers: { authorization } })).status).toBe(401);
  });
});

describe('a token that is not valid is UNAUTHENTICATED:', () => {
  const now = seconds();
  it.each([
    ['none at all', undefined],
    ['nonsense', 'x.y.z'],
    ['another secret', token({ sub: '5' }, undefined, 'another secret')],
    ['no algorithm', `${encode({ alg: 'none' })}.${encode({ sub: '5', exp: 9e9 })}.`],
    ['another algorithm', token({ sub: '5' }, { alg: 'HS512', typ: 'JWT' }, secret, 'sha512')],
    ['an algorithm that is only claimed', token({ sub: '5' }, { alg: 'RS256', typ: 'JWT' })],
    ['a header that demands unknown rules', token({ sub: '5' }, { alg: 'HS256', crit: ['x'], x: 1 })],
    ['expired', token({ sub: '5', exp: now - 30 })],
    ['no expiry', token({ sub: '5', exp: undefined })],
    ['expiry that is no number', token({ sub: '5', exp: '9999999999' })],
    ['not valid yet', token({ sub: '5', nbf: now + 30 })],
    ['a start that is no number', token({ sub: '5', nbf: 'later' })],
    ['claims that are no object', `${encode({ alg: 'HS256' })}.${encode(7)}.x`],
  ])('%s', async (_name, bearer) => {
    const answer = await ask('/things/mine', bearer);
    expect(answer.headers.get('www-authenticate')).toBe('Bearer');
    expect(await codeOf(Promise.resolve(answer))).toBe('UNAUTHENTICATED');
  });
  it.each([
    '0',
    '-5',
    '05',
    ' 5',
    '5 ',
    'abc',
    '5.0',
    '1e3',
    '9223372036854775808',
    5,
    null,
    ['5'],
    '',
    '５',
    { a: 1 },
  ])('subject %j', async (sub) => {
    expect(await codeOf(ask('/things/mine', token({ sub })))).toBe('UNAUTHENTICATED');
  });
  it('no subject', async () => {
    expect(await codeOf(ask('/things/mine', token({})))).toBe('UNAUTHENTICATED');
  });
});

it('tolerates clocks that differ by up to five seconds', async () => {
  expect((await ask('/things/mine', token({ sub: '1', exp: seconds() - 3 }))).status).toBe(200);
  expect((await ask('/things/mine', token({ sub: '1', nbf: seconds() + 3 }))).status).toBe(200);
});

describe('precedence', () => {
  const large = { method: 'POST', headers: { 'content-type': 'application/json' }, body: 'x'.repeat(100_000) };
  it('401 before 403, 403 before 400, 413 and 415', async () => {
    expect(await codeOf(ask('/admin/x', undefined, large))).toBe('UNAUTHENTICATED');
    expect(await codeOf(ask('/admin/x', token({ sub: '1' }), large))).toBe('FORBIDDEN');
    expect(
      await codeOf(
        ask('/admin/x', token({ sub: '1', role: 'payment' }), { ...large, headers: { 'content-type': 'text/plain' } }),
      ),
    ).toBe('FORBIDDEN');
    expect(await codeOf(ask('/admin/x', token({ sub: '1', role: 'admin' }), large))).toBe('PAYLOAD_TOO_LARGE');
    expect(await codeOf(ask('/admin/x', token({ sub: '1', role: 'admin' }), { ...large, body: '{"text":"a"}' }))).toBe(
      'INVALID_ARGUMENT',
    );
    expect(await codeOf(ask('/admin/1', token({ sub: '1', role: 'admin' }), { ...large, body: '{"text":"a"}' }))).toBe(
      201,
    );
  });
  it('a handler’s own access wins over its class’s', async () => {
    expect(await codeOf(ask('/admin/own', token({ sub: '1' })))).toBe(200);
    expect(await codeOf(ask('/admin/payments', token({ sub: '1', role: 'payment' })))).toBe(200);
    expect(await codeOf(ask('/admin/payments', token({ sub: '1' })))).toBe('FORBIDDEN');
  });
  it('unknown routes are NOT_FOUND for anyone', async () => {
    expect(await codeOf(ask('/nothing'))).toBe('NOT_FOUND');
    expect(await codeOf(ask('/nothing', 'x'))).toBe('NOT_FOUND');
  });
});

describe('a remembered token', () => {
  it('ends with its expiry', () => {
    vi.useFakeTimers();
    try {
      const verifier = new TokenVerifier({ jwtSecret: secret, jwksUrl: undefined });
      const short = token({ sub: '1', exp: seconds() + 10 });
      expect(verifier.verify(short)).toEqual({ userId: '1', role: undefined });
      vi.advanceTimersByTime(14_000);
      expect(verifier.verify(short)).toEqual({ userId: '1', role: undefined });
      vi.advanceTimersByTime(2000);
      expect(verifier.verify(short)).toBeUndefined();
      expect(verifier.verify(short)).toBeUndefined();
    } finally {
      vi.useRealTimers();
    }
  });
  it('is the same object the second time: its signature is checked once', () => {
    const verifier = new TokenVerifier({ jwtSecret: secret, jwksUrl: undefined });
    const bearer = token({ sub: '1' });
    expect(verifier.verify(bearer)).toBe(verifier.verify(bearer));
  });
});

describe('with the keys of an issuer', () => {
  const pairs = {
    RS256: generateKeyPairSync('rsa', { modulusLength: 2048 }),
    ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
    EdDSA: generateKeyPairSync('ed25519'),
  };
  const issuer = createServer((_request, response) => void serveKeys().then((keys) => response.end(keys)));
  const serveKeys = async (): Promise<string> => {
    const keys = await Promise.all(
      Object.entries(pairs).map(async ([alg, { publicKey }]) => ({ ...(await exportJWK(publicKey)), alg, kid: alg })),
    );
    return JSON.stringify({ keys });
  };
  const sign = (alg: string, kid: string, key: KeyObject, claims: object = {}) =>
    new SignJWT({ sub: '7', exp: seconds() + 60, ...claims }).setProtectedHeader({ alg, kid }).sign(key);
  let verifier: TokenVerifier;
  let jwksUrl: string;
  beforeAll(async () => {
    await new Promise<void>((resolve) => issuer.listen(0, '127.0.0.1', resolve));
    jwksUrl = `http://127.0.0.1:${(issuer.address() as AddressInfo).port}/keys`;
    verifier = new TokenVerifier({ jwtSecret: undefined, jwksUrl });
  });
  afterAll(() => issuer.close());

  it.each(Object.keys(pairs) as (keyof typeof pairs)[])('%s tokens are valid', async (alg) => {
    const bearer = await sign(alg, alg, pairs[alg].privateKey, { role: 'admin' });
    expect(await verifier.verify(bearer)).toEqual({ userId: '7', role: 'admin' });
    expect(verifier.verify(bearer)).toEqual({ userId: '7', role: 'admin' });
  });
  it('foreign keys, odd subjects, missing expiry and a secret’s algorithm are refused', async () => {
    const stranger = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
    const own = pairs.ES256.privateKey;
    for (const bearer of [
      await sign('ES256', 'ES256', stranger),
      await sign('ES256', 'unknown', own),
      await sign('ES256', 'ES256', own, { sub: '07' }),
      await new SignJWT({ sub: '7' }).setProtectedHeader({ alg: 'ES256', kid: 'ES256' }).sign(own),
      token({ sub: '7' }),
      'x.y.z',
    ])
      expect(await verifier.verify(bearer)).toBeUndefined();
  });
  it('an issuer that is away is trouble, not a bad token', async () => {
    const bearer = await sign('ES256', 'ES256', pairs.ES256.privateKey);
    const away = await start({ AUTH_JWKS_URL: 'http://127.0.0.1:1/keys' });
    const answer = await fetch(`${away.url}/things/mine`, { headers: { authorization: `Bearer ${bearer}` } });
    expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([503, 'UNAVAILABLE']);
    await away.app.close();
  });
});
