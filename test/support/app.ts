import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { readSettings, type Settings } from '#config';
import type { Intake } from '#http';
import { createApp } from '../../apps/seckill/src/app.js';
import { TEST_SECRET } from './tokens.js';
import { until } from './waiting.js';

export interface AppOptions {
  readonly redisUrl: string;
  readonly databaseUrl: string;
  /** Further settings by their names in the environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** For values that the environment does not allow (limits of milliseconds, say). */
  readonly adjust?: (settings: Settings) => Settings;
}

/** The product as it runs in production, inside this process, on a free port. */
export interface RunningApp {
  readonly url: string;
  readonly app: NestFastifyApplication;
  readonly intake: Intake;
  readonly settings: Settings;
  /** Ends it as a signal would: intake, modules, connections. Twice is harmless. */
  close(): Promise<void>;
}

/** Starts the whole API with its consumer. It listens at once; `/health/ready` tells when it sells (see `whenReady`). */
export async function startApp({
  redisUrl,
  databaseUrl,
  env = {},
  adjust = (s) => s,
}: AppOptions): Promise<RunningApp> {
  const read = readSettings({
    REDIS_URL: redisUrl,
    DATABASE_URL: databaseUrl,
    AUTH_JWT_SECRET: TEST_SECRET,
    CONSUMER_BLOCK_MS: '100',
    ...env,
  });
  if (!read.ok) throw new Error(read.problems.join('; '));
  const settings = adjust(read.settings);
  const { app, intake } = await createApp(settings);
  await app.listen(0, '127.0.0.1');
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    await intake.close(app.getHttpServer(), settings.http.requestTimeoutMs);
    await app.close();
  };
  return { url: await app.getUrl(), app, intake, settings, close: () => (closing ??= close()) };
}

/** Resolves when GET /health/ready answers 200; fails with its last body after `limitMs`. */
export async function whenReady(url: string, limitMs = 20_000): Promise<void> {
  await until(
    'ready',
    async () => {
      const answer = await fetch(`${url}/health/ready`);
      if (answer.status !== 200) throw new Error(await answer.text());
      return true;
    },
    limitMs,
  );
}
