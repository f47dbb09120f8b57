import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { dataFolder } from './services/data-folder.mjs';
import { endMarked } from './services/process-identity.mjs';
import { listenForStop } from './services/stop-request.mjs';
import { runCommand } from './setup/command.mjs';
import { Phases } from './setup/phases.mjs';
import { projectRoot } from './setup/project-root.mjs';
import { provideRedisBinary } from './setup/redis-binary.mjs';
import { setUp } from './setup/set-up.mjs';
import { Interrupted, tellFailure } from './setup/start-failure.mjs';
import { countTests } from './setup/test-count.mjs';

/** Every process of this run carries the mark in its environment, so that whatever a killed test left behind can be found and ended. */
const MARK = `FLASH_SALE_TEST_RUN=${randomBytes(12).toString('hex')}`;
const FORCE_AFTER_MS = 20_000;

/**
 * The checks that need no service, side by side. Each counts as one test in the last line.
 * @param {{ phases: Phases, signal: AbortSignal, logs: string }} context
 * @returns {Promise<{ passed: number, failed: number }>}
 */
async function runChecks({ phases, signal, logs }) {
  const scripts = existsSync(join(projectRoot, 'eslint.config.mjs')) ? ['typecheck', 'lint'] : ['typecheck'];
  /** @type {{ script: string, code: number, tail: string }[]} */
  const results = await phases.run(`Checking: npm run ${scripts.join(', npm run ')}`, async (tell) => {
    const all = await Promise.all(scripts.map((script) => runCheck(script, { signal, logs })));
    tell(`Checked: ${scripts.join(', ')}`);
    return all;
  });
  const failures = results.filter(({ code }) => code !== 0);
  for (const { script, code, tail } of failures) {
    process.stdout.write(`${tail.trimEnd()}\nFAIL npm run ${script} (code ${code})\n`);
  }
  return { passed: results.length - failures.length, failed: failures.length };
}

/**
 * @param {string} script of package.json
 * @param {{ signal: AbortSignal, logs: string }} context
 */
async function runCheck(script, { signal, logs }) {
  const logFile = join(logs, `${script}.log`);
  rmSync(logFile, { force: true });
  const { code, tail } = await runCommand('npm', ['run', '--silent', script], { cwd: projectRoot, logFile, signal });
  return { script, code, tail };
}

/**
 * @param {{ redisServer: string, reportFile: string, args: string[], signal: AbortSignal }} options
 * @returns {Promise<number>} vitest's exit code
 */
function runVitest({ redisServer, reportFile, args, signal }) {
  const vitest = join(projectRoot, 'node_modules/vitest/vitest.mjs');
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${reportFile}`];
  const [markName = '', markValue] = MARK.split('=');
  const env = {
    ...process.env,
    [markName]: markValue,
    REDIS_SERVER: redisServer,
    PATH: `${dirname(redisServer)}${delimiter}${process.env['PATH'] ?? ''}`,
  };
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [vitest, 'run', ...reporters, ...args], {
      cwd: projectRoot,
      env,
      detached: true,
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    const end = () => {
      child.kill('SIGINT');
      setTimeout(() => child.kill('SIGKILL'), FORCE_AFTER_MS).unref();
    };
    signal.addEventListener('abort', end, { once: true });
    child.once('error', reject);
    child.once('exit', (code) => resolve(code ?? 1));
  });
}

/** @param {string[]} args for vitest */
async function main(args) {
  const stop = listenForStop({ onForce: () => void endMarked(MARK).then(() => process.exit(1)) });
  const { signal } = stop;
  const phases = new Phases(process.stdout);
  const data = dataFolder(join(projectRoot, '.data'));
  mkdirSync(data.logs, { recursive: true });
  await setUp({ phases, signal });
  const redis = await provideRedisBinary({ phases, signal });
  const checks = await runChecks({ phases, signal, logs: data.logs });
  const reportFile = join(data.logs, 'test-report.json');
  rmSync(reportFile, { force: true });
  const code = await runVitest({ redisServer: redis.path, reportFile, args, signal });
  const left = await endMarked(MARK);
  if (left.length > 0) process.stdout.write(`Ended what the tests left running: ${left.join(', ')}\n`);
  if (signal.aborted) throw new Interrupted();
  const tests = countTests(existsSync(reportFile) ? readFileSync(reportFile, 'utf8') : '', code);
  return { passed: checks.passed + tests.passed, failed: checks.failed + tests.failed };
}

main(process.argv.slice(2)).then(
  ({ passed, failed }) => {
    process.stdout.write(`\n${passed} passed, ${failed} failed\n`);
    process.exitCode = failed === 0 ? 0 : 1;
  },
  (error) => {
    const told =
      error instanceof Interrupted
        ? 'npm test was interrupted.'
        : tellFailure(error, 'npm test', process.env['LOG_LEVEL']);
    process.stdout.write(`${told}\n\n0 passed, 1 failed\n`);
    process.exitCode = error instanceof Interrupted ? 130 : 1;
  },
);
