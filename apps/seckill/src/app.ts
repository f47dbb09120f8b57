import { type LoggerService } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Settings } from '#config';
import { createHttpServer } from '#http';
import type { Assembled } from '#lifecycle';
import { AppModule } from './app.module.js';
import { serveOpenApi } from './openapi/openapi.js';

/** Puts the API together as it runs in production; it does not listen yet. Waits for no store. `logger` false: says nothing. */
export async function createApp(settings: Settings, logger: LoggerService | false = false): Promise<Assembled> {
  const { adapter, intake } = createHttpServer();
  const app = await NestFactory.create<NestFastifyApplication>(AppModule.forRoot(settings), adapter, {
    // Fastify's own parser reads bodies: it refuses __proto__.
    bodyParser: false,
    logger,
    abortOnError: false,
  });
  serveOpenApi(app);
  return { app, intake };
}
