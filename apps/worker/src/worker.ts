import { type LoggerService } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Settings } from '#config';
import { createHttpServer } from '#http';
import type { Assembled } from '#lifecycle';
import { WorkerModule } from './worker.module.js';

/** Puts a worker together as it runs in production; it does not listen yet. It consumes whatever CONSUMER_ENABLED says: it does nothing else. */
export async function createWorker(settings: Settings, logger: LoggerService | false = false): Promise<Assembled> {
  const consuming: Settings = { ...settings, consumer: { ...settings.consumer, enabled: true } };
  const { adapter, intake } = createHttpServer();
  const app = await NestFactory.create<NestFastifyApplication>(WorkerModule.forRoot(consuming), adapter, {
    bodyParser: false,
    logger,
    abortOnError: false,
  });
  return { app, intake };
}
