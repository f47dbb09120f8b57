import { Controller, Get, Module, Post, UseInterceptors } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ConfigModule, readSettings } from '#config';
import { AnswerInTimeInterceptor, createHttpServer, HttpModule, routeFacts } from './index.js';

@Controller('slow')
@routeFacts({ access: 'public' })
@UseInterceptors(AnswerInTimeInterceptor)
class SlowController {
  @Get()
  read(): Promise<never> {
    return new Promise<never>(() => undefined);
  }
  @Post()
  write(): Promise<never> {
    return new Promise<never>(() => undefined);
  }
  @Post('doubted')
  doubted(): never {
    const cause = Object.assign(new Error('no answer to COMMIT'), { mayHaveHadEffect: true });
    throw Object.assign(new Error('away', { cause }), { code: 'DATABASE_UNAVAILABLE' });
  }
  @Post('refused')
  refused(): never {
    throw Object.assign(new Error('away'), { code: 'DATABASE_UNAVAILABLE', mayHaveHadEffect: false });
  }
  @Get('doubted')
  doubtedReading(): never {
    throw Object.assign(new Error('away'), { code: 'REDIS_UNAVAILABLE', mayHaveHadEffect: true });
  }
}

let app: NestFastifyApplication;

beforeAll(async () => {
  const read = readSettings({ AUTH_JWT_SECRET: 'x'.repeat(32), REQUEST_TIMEOUT_MS: '100' });
  if (!read.ok) throw new Error(read.problems.join('; '));
  @Module({ imports: [ConfigModule.forRoot(read.settings), HttpModule], controllers: [SlowController] })
  class SlowModule {}
  app = await NestFactory.create<NestFastifyApplication>(SlowModule, createHttpServer().adapter, {
    bodyParser: false,
    logger: false,
  });
  await app.init();
});
afterAll(() => app.close());

async function codeOf(method: 'GET' | 'POST', url: string): Promise<string> {
  const response = await app.inject({ method, url });
  expect(response.statusCode).toBe(503);
  expect(response.headers['retry-after']).toBe('1');
  return response.json<{ code: string }>().code;
}

describe('a call whose stores do not answer', () => {
  it('that reads is unavailable', async () => {
    expect(await codeOf('GET', '/slow')).toBe('UNAVAILABLE');
  });
  it('that writes has an unknown outcome', async () => {
    expect(await codeOf('POST', '/slow')).toBe('OUTCOME_UNKNOWN');
  });
});

describe('a call that fails', () => {
  it('with an effect that may stand has an unknown outcome, however deep the cause lies', async () => {
    expect(await codeOf('POST', '/slow/doubted')).toBe('OUTCOME_UNKNOWN');
  });
  it('before any effect is unavailable, and so is every reading', async () => {
    expect(await codeOf('POST', '/slow/refused')).toBe('UNAVAILABLE');
    expect(await codeOf('GET', '/slow/doubted')).toBe('UNAVAILABLE');
  });
});
