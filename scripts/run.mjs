import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { dataFolder, keptSecret } from './services/data-folder.mjs';
import { runningStart } from './services/run-file.mjs';
import { listenForStop } from './services/stop-request.mjs';
import { Phases } from './setup/phases.mjs';
import { projectRoot } from './setup/project-root.mjs';
import { setUp } from './setup/set-up.mjs';
import { Interrupted, StartFailure, tellFailure } from './setup/start-failure.mjs';

/**
 * Runs dist/scripts/<name>.js in this process, after the set-up (quiet where nothing is to do). Where a setting is not given and `npm start` runs, the
 * script finds that one's REDIS_URL, DATABASE_URL and AUTH_JWT_SECRET in its environment.
 * @param {string} name
 * @param {string[]} args
 */
async function runScript(name, args) {
  const stop = listenForStop({ onForce: () => process.exit(1) });
  await setUp({ phases: new Phases(process.stderr, { quiet: true }), signal: stop.signal });
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) process.removeAllListeners(signal);
  const script = join(projectRoot, `dist/scripts/${name}.js`);
  if (!existsSync(script)) {
    throw new StartFailure({
      what: `There is no script "${name}"`,
      why: `scripts/${name}.ts is missing`,
      next: 'npm run shows the commands there are.',
    });
  }
  lendSettings();
  process.argv = [process.execPath, script, ...args];
  await import(pathToFileURL(script).href);
}

/** Fills in what a running `npm start` uses, where the environment does not say otherwise. */
function lendSettings() {
  const data = dataFolder(join(projectRoot, '.data'));
  const report = runningStart(data.runFile)?.report;
  if (report === undefined) return;
  const { env } = process;
  const named = env['REDIS_URL'] || env['REDIS_CLUSTER_NODES'] || env['REDIS_SENTINELS'];
  if (!named) {
    if (report.redisUrl !== undefined) env['REDIS_URL'] = report.redisUrl;
    if (report.redisClusterNodes !== undefined) env['REDIS_CLUSTER_NODES'] = report.redisClusterNodes;
    if (report.redisSentinels !== undefined) env['REDIS_SENTINELS'] = report.redisSentinels;
    if (report.redisMasterName !== undefined) env['REDIS_MASTER_NAME'] = report.redisMasterName;
  }
  if (!env['DATABASE_URL']) env['DATABASE_URL'] = report.databaseUrl;
  if (!env['AUTH_JWT_SECRET'] && !env['AUTH_JWKS_URL']) env['AUTH_JWT_SECRET'] = keptSecret(data.jwtSecret);
}

const [name = '', ...args] = process.argv.slice(2);
if (!/^[a-z][a-z-]*$/.test(name)) {
  process.stderr.write('node scripts/run.mjs NAME [arguments]: runs dist/scripts/NAME.js\n');
  process.exit(2);
}
runScript(name, args).catch((error) => {
  if (error instanceof Interrupted) process.exit(0);
  process.stderr.write(`${tellFailure(error, `npm run ${name}`, process.env['LOG_LEVEL'])}\n`);
  process.exit(1);
});
