import { spawn } from 'node:child_process';
import { dirname, delimiter, join } from 'node:path';
import { listenForStop } from './services/stop-request.mjs';
import { Phases } from './setup/phases.mjs';
import { projectRoot } from './setup/project-root.mjs';
import { provideRedisBinary } from './setup/redis-binary.mjs';
import { setUp } from './setup/set-up.mjs';
import { Interrupted, tellFailure } from './setup/start-failure.mjs';

/**
 * `npm run test:cluster [-- vitest's arguments]`: the product on a real Redis Cluster and behind real sentinels, under faults. Sets up what is missing.
 * @param {string[]} args for vitest
 * @returns {Promise<number>} its exit code
 */
async function main(args) {
  const { signal } = listenForStop({ onForce: () => process.exit(1) });
  const phases = new Phases(process.stdout);
  await setUp({ phases, signal });
  const redis = await provideRedisBinary({ phases, signal });
  const vitest = join(projectRoot, 'node_modules/vitest/vitest.mjs');
  const child = spawn(process.execPath, [vitest, 'run', '--config', 'test/cluster/vitest.config.ts', ...args], {
    cwd: projectRoot,
    env: {
      ...process.env,
      REDIS_SERVER: redis.path,
      PATH: `${dirname(redis.path)}${delimiter}${process.env['PATH'] ?? ''}`,
    },
    detached: true,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  signal.addEventListener('abort', () => child.kill('SIGINT'), { once: true });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => resolve(code ?? 1));
  });
}

main(process.argv.slice(2)).then(
  (code) => (process.exitCode = code),
  (error) => {
    if (error instanceof Interrupted) process.exit(130);
    process.stdout.write(`${tellFailure(error, 'npm run test:cluster', process.env['LOG_LEVEL'])}\n`);
    process.exitCode = 1;
  },
);
