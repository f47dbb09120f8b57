import { EventEmitter, once } from 'node:events';
import { Body, Controller, Get, Module, Param, Post, Query, Req, Res } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { IsOptional, IsString, MaxLength, ValidateNested } from 'class-validator';
import { Type } from 'class-transformer';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { lastJson, sendRaw } from '../test-support/raw-socket.js';
import {
  createHttpServer,
  ERROR_CODES,
  HttpModule,
  IdParam,
  IgnoreBody,
  IsCanonicalId,
  IsWholeNumber,
  IsZonedIsoTime,
  ProblemException,
  routeFacts,
  sendProblem,
} from './index.js';

class Inner {
  @IsWholeNumber(1, 5)
  count!: number;
}
class Thing {
  @IsCanonicalId()
  shopId!: string;
  @IsZonedIsoTime()
  beginTime!: string;
  @IsOptional()
  @IsString()
  @MaxLength(10)
  note?: string;
  @IsOptional()
  @ValidateNested()
  @Type(() => Inner)
  inner?: Inner;
}
class Filter {
  @IsCanonicalId()
  shopId!: string;
}

/** Tells when a slow call has begun, and hands out what ends it. */
const slowCalls = new EventEmitter<{ begin: [() => void] }>();
const slowBegins = async (): Promise<() => void> => {
  const [release] = (await once(slowCalls, 'begin')) as [() => void];
  return release;
};

@Controller('things')
@routeFacts({ access: 'public' })
class ThingController {
  @Post()
  create(@Body() thing: Thing): Thing {
    return thing;
  }
  @Get()
  list(@Query() filter: Filter): Filter {
    return filter;
  }
  @Get(':thingId')
  read(@Param('thingId', IdParam) thingId: string): { thingId: string } {
    return { thingId };
  }
  @Post(':thingId/buy')
  @IgnoreBody()
  buy(@Param('thingId', IdParam) thingId: string, @Body() body: unknown): { thingId: string; body: unknown } {
    return { thingId, body: body ?? null };
  }
  @Post(':thingId/refuse')
  refuse(@Req() request: FastifyRequest, @Res() reply: FastifyReply): void {
    sendProblem(request, reply, 'DUPLICATE_ORDER', { orderId: '9007199254740993' });
  }
  @Get(':thingId/throw/:what')
  throwIt(@Param('what') what: string): never {
    switch (what) {
      case 'refusal':
        throw new ProblemException('NOT_STARTED', { beginTime: '2026-01-01T00:00:00.000Z' });
      case 'database':
        throw Object.assign(new Error('no database'), { code: 'DATABASE_UNAVAILABLE' });
      case 'wrapped':
        throw new Error('outer', { cause: Object.assign(new Error('terminating'), { code: '57P01' }) });
      case 'nothing':
        throw undefined as unknown as Error;
      default:
        throw new Error('secret detail of a defect');
    }
  }
  @Get(':thingId/slow')
  async slow(): Promise<{ slow: true }> {
    await new Promise<void>((release) => slowCalls.emit('begin', release));
    return { slow: true };
  }
}

@Module({ imports: [HttpModule], controllers: [ThingController] })
class TestModule {}

const { adapter, intake } = createHttpServer({ headersMs: 300, requestMs: 600, drainMs: 300 });
let app: NestFastifyApplication;
let port: number;
let url: string;
const call = (path: string, init: RequestInit = {}) => fetch(url + path, init);
const post = (path: string, body: string, type = 'application/json') =>
  call(path, { method: 'POST', body, headers: { 'content-type': type } });
async function problemOf(answer: Response | Promise<Response>): Promise<Record<string, unknown>> {
  const response = await answer;
  const { headers, status } = response;
  expect(headers.get('content-type')).toMatch(/^application\/problem\+json/);
  const problem = (await response.json()) as Record<string, unknown>;
  expect(problem).toMatchObject({
    status,
    type: `/docs/errors/${String(problem['code'])}`,
    requestId: headers.get('x-request-id'),
  });
  return problem;
}

beforeAll(async () => {
  app = await NestFactory.create<NestFastifyApplication>(TestModule, adapter, { bodyParser: false, logger: false });
  await app.listen(0, '127.0.0.1');
  port = (app.getHttpServer().address() as { port: number }).port;
  url = `http://127.0.0.1:${port}`;
});
afterAll(() => app.close());

describe('a path id', () => {
  it.each(['1', '9007199254740993', '9223372036854775807'])('%s passes unchanged', async (id) => {
    expect(await (await call(`/things/${id}`)).json()).toEqual({ thingId: id });
  });
  it.each([
    '0',
    '-1',
    '+7',
    '07',
    '1abc',
    '1e3',
    '0x10',
    '12.7',
    '1,000',
    '9223372036854775808',
    '9'.repeat(40),
    '9'.repeat(8000),
    '%20',
    '%EF%BC%91',
    '%D9%A1',
    'NaN',
    'null',
    '%00',
  ])('%s is INVALID_ARGUMENT naming the parameter', async (id) => {
    const problem = await problemOf(call(`/things/${id}`));
    expect(problem).toMatchObject({ code: 'INVALID_ARGUMENT', errors: [{ parameter: 'thingId' }] });
  });
});

describe('a body', () => {
  const good = { shopId: '1', beginTime: '2026-11-30T12:00:00+08:00' };
  it('that follows the rules reaches the handler as it is', async () => {
    const answer = await post('/things', JSON.stringify({ ...good, inner: { count: 5 } }));
    expect([answer.status, await answer.json()]).toEqual([201, { ...good, inner: { count: 5 } }]);
  });
  it('names every bad field by its pointer', async () => {
    const body = { shopId: 1, beginTime: '2026-11-30T12:00:00', note: 'x'.repeat(11), 'a/b': 1, inner: { count: '5' } };
    const { errors } = (await problemOf(post('/things', JSON.stringify(body)))) as {
      errors: { pointer: string; detail: string }[];
    };
    expect(errors.map(({ pointer }) => pointer).sort()).toEqual([
      '/a~1b',
      '/beginTime',
      '/inner/count',
      '/note',
      '/shopId',
    ]);
    for (const { detail } of errors) expect(detail.length).toBeGreaterThan(10);
  });
  it.each([
    ['nothing', ''],
    ['an array', '[]'],
    ['a string', '"x"'],
    ['a number', '7'],
    ['null', 'null'],
    ['broken JSON', '{'],
    ['a prototype', '{"__proto__":{"role":"admin"}}'],
    ['a constructor', '{"constructor":{"prototype":{"a":1}}}'],
    ['a byte order of another kind', '\ufeff\ufeff{}'],
  ])('of %s is INVALID_ARGUMENT', async (_name, raw) => {
    expect(await problemOf(post('/things', raw))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      errors: [expect.anything()],
    });
  });
  it('that is missing is INVALID_ARGUMENT', async () => {
    expect(await problemOf(call('/things', { method: 'POST' }))).toMatchObject({ code: 'INVALID_ARGUMENT' });
  });
  it.each([
    'text/plain',
    'application/xml',
    'multipart/form-data; boundary=x',
    'application/x-www-form-urlencoded',
    'nonsense',
  ])('of type %s is UNSUPPORTED_MEDIA_TYPE', async (type) => {
    expect(await problemOf(post('/things', 'a=b', type))).toMatchObject({ code: 'UNSUPPORTED_MEDIA_TYPE' });
  });
  it('of more than 64 KiB is PAYLOAD_TOO_LARGE', async () => {
    expect(await problemOf(post('/things', JSON.stringify({ note: 'x'.repeat(70_000) })))).toMatchObject({
      code: 'PAYLOAD_TOO_LARGE',
    });
  });
  it('of 5 MB in chunks is PAYLOAD_TOO_LARGE', async () => {
    const chunk = 'x'.repeat(5_000_000);
    const raw = await sendRaw(
      port,
      'POST /things HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n',
      `${chunk.length.toString(16)}\r\n${chunk}\r\n0\r\n\r\n`,
    );
    expect(raw).toMatch(/^HTTP\/1.1 413 /);
    expect(lastJson(raw)).toMatchObject({ code: 'PAYLOAD_TOO_LARGE' });
  });
});

it('names a bad query parameter', async () => {
  expect(await problemOf(call('/things?shopId=01&x=1'))).toMatchObject({
    errors: expect.arrayContaining([
      expect.objectContaining({ parameter: 'shopId' }),
      expect.objectContaining({ parameter: 'x' }),
    ]) as unknown,
  });
});

describe('a call that takes no body', () => {
  it.each([
    ['application/json', '{'],
    ['application/json', ''],
    ['text/plain', 'x'],
    ['nonsense', 'x'],
    ['application/xml', 'x'.repeat(5_000_000)],
  ])('answers whatever is sent as %s', async (type, body) => {
    const answer = await post('/things/1/buy', body, type);
    expect([answer.status, await answer.json()]).toEqual([201, { thingId: '1', body: null }]);
  });
  it('answers before the body has arrived, and throws the rest of the connection away after a while', async () => {
    const raw = await sendRaw(port, 'POST /things/1/buy HTTP/1.1\r\nhost: a\r\ncontent-length: 100000\r\n\r\nhello');
    expect(raw).toMatch(/^HTTP\/1.1 201 /);
  });
  it('serves the next request of the connection after a body that was not read', async () => {
    const body = 'x'.repeat(100_000);
    const raw = await sendRaw(
      port,
      `POST /things/1/buy HTTP/1.1\r\nhost: a\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      'GET /things/2 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n',
    );
    expect(raw.match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 201', 'HTTP/1.1 200']);
  });
});

describe('an error', () => {
  it('that is a refusal carries its members, in the language asked for', async () => {
    const headers = { 'accept-language': 'fr;q=1, en;q=0.3, zh-CN;q=0.9' };
    const answer = await call('/things/1/refuse', { method: 'POST', headers });
    expect(answer.headers.get('content-language')).toBe('zh');
    expect(await problemOf(answer)).toMatchObject({
      code: 'DUPLICATE_ORDER',
      status: 409,
      orderId: '9007199254740993',
      detail: '不能重复下单。',
      instance: '/things/1/refuse',
    });
    expect(await problemOf(call('/things/1/throw/refusal'))).toMatchObject({ beginTime: '2026-01-01T00:00:00.000Z' });
  });
  it.each(['database', 'wrapped'])('that is trouble (%s) is 503 with Retry-After', async (what) => {
    const answer = await call(`/things/1/throw/${what}`);
    expect(answer.headers.get('retry-after')).toBe('1');
    expect(await problemOf(answer)).toMatchObject({ code: 'UNAVAILABLE', status: 503, retryAfter: 1 });
  });
  it.each(['defect', 'nothing'])('that is a %s is 500 and tells nothing of its inside', async (what) => {
    const problem = await problemOf(call(`/things/1/throw/${what}`));
    expect(problem).toMatchObject({ code: 'INTERNAL', status: 500 });
    expect(JSON.stringify(problem)).not.toMatch(/secret|\.ts|at /);
  });
  it.each([
    ['GET', '/nothing'],
    ['DELETE', '/things'],
    ['OPTIONS', '/things'],
    ['GET', '/things/1/2/3/4'],
  ])('for %s %s is NOT_FOUND', async (method, path) => {
    expect(await problemOf(call(path, { method }))).toMatchObject({ code: 'NOT_FOUND', status: 404 });
  });
  it('for a bad escape is INVALID_ARGUMENT', async () => {
    expect(await problemOf(call('/things/%zz'))).toMatchObject({ code: 'INVALID_ARGUMENT' });
  });
  it('for a URL beyond its limit is URI_TOO_LONG', async () => {
    expect(await problemOf(call(`/things/${'9'.repeat(9000)}`))).toMatchObject({ code: 'URI_TOO_LONG', status: 414 });
  });
});

describe('a request id', () => {
  it('is taken from the caller where it is sane, else made', async () => {
    const given = await call('/things/1', { headers: { 'x-request-id': 'trace-1:a' } });
    expect(given.headers.get('x-request-id')).toBe('trace-1:a');
    const odd = await call('/things/1', { headers: { 'x-request-id': 'a b' } });
    expect(odd.headers.get('x-request-id')).toMatch(/^[\w-]+-[a-z0-9]+$/);
    const long = await call('/things/1', { headers: { 'x-request-id': 'x'.repeat(500) } });
    expect(long.headers.get('x-request-id')?.length).toBeLessThan(40);
  });
});

describe('bytes that are no request', () => {
  it('are answered with a problem', async () => {
    const raw = await sendRaw(port, 'HELLO\r\n\r\n');
    expect(raw).toMatch(/^HTTP\/1.1 400 /);
    expect(lastJson(raw)).toMatchObject({ code: 'INVALID_ARGUMENT', status: 400 });
  });
  it('with 1 MB of headers are HEADERS_TOO_LARGE', async () => {
    const raw = await sendRaw(port, `GET /things/1 HTTP/1.1\r\nhost: a\r\nx: ${'y'.repeat(1_000_000)}\r\n\r\n`);
    expect(raw).toMatch(/^HTTP\/1.1 431 /);
    expect(lastJson(raw)).toMatchObject({ code: 'HEADERS_TOO_LARGE' });
    expect(raw).toMatch(/\r\nx-request-id: \S+/);
  });
  it('after a good request do not spoil its answer', async () => {
    const begun = slowBegins();
    const answer = sendRaw(port, 'GET /things/1/slow HTTP/1.1\r\nhost: a\r\n\r\ngarbage\r\n\r\n');
    (await begun)();
    const raw = await answer;
    expect(raw).toMatch(/^HTTP\/1.1 200 /);
    expect(raw.match(/HTTP\/1.1/g)).toHaveLength(1);
  });
  it('that trickle in are cut', async () => {
    const raw = await sendRaw(port, 'GET /things/1 HTTP/1.1\r\nhost: a\r\n');
    expect(raw).toMatch(/^HTTP\/1.1 408 /);
    expect(lastJson(raw)).toMatchObject({ code: 'REQUEST_TIMEOUT' });
  });
  it('that stop within a body are cut', async () => {
    const raw = await sendRaw(
      port,
      'POST /things HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{',
    );
    expect(raw).toMatch(/^HTTP\/1.1 408 /);
  });
});

it('answers HEAD like GET without the body', async () => {
  const answer = await call('/things/1', { method: 'HEAD' });
  expect([answer.status, await answer.text()]).toEqual([200, '']);
});

describe('the page of an error', () => {
  it.each(ERROR_CODES)('%s tells cause, remedy and an example', async (code) => {
    const html = await (await call(`/docs/errors/${code}`, { headers: { accept: 'text/html' } })).text();
    for (const part of [code, 'Cause', 'Remedy', 'Example', '"requestId"'])
      expect(html).toContain(part.replaceAll('"', '&quot;'));
    const json = (await (
      await call(`/docs/errors/${code}`, { headers: { accept: 'application/json' } })
    ).json()) as Record<string, unknown>;
    expect(json).toMatchObject({ code, type: `/docs/errors/${code}` });
    for (const member of ['cause', 'remedy']) expect(String(json[member]).length).toBeGreaterThan(10);
  });
  it('is listed in the index', async () => {
    const { items } = (await (await call('/docs/errors', { headers: { accept: 'application/json' } })).json()) as {
      items: { code: string }[];
    };
    expect(items.map(({ code }) => code)).toEqual(ERROR_CODES);
    expect(await (await call('/docs/errors')).text()).toContain('href="errors/SOLD_OUT"');
  });
  it.each(['NOTHING', 'constructor', '__proto__'])('%s is not found', async (code) => {
    expect(await problemOf(call(`/docs/errors/${code}`))).toMatchObject({ code: 'NOT_FOUND' });
  });
});

describe('closing the intake', () => {
  it('answers what runs, refuses what comes, and leaves no connection', async () => {
    const begun = slowBegins();
    const running = call('/things/1/slow');
    const release = await begun;
    const closed = intake.close(app.getHttpServer(), 20_000);
    await expect(call('/things/1')).rejects.toThrow();
    release();
    const answer = await running;
    expect([answer.status, answer.headers.get('connection')]).toEqual([200, 'close']);
    await closed;
  });
});
