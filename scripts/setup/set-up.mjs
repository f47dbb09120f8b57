import { join } from 'node:path';
import { dataFolder } from '../services/data-folder.mjs';
import { build, buildIsFresh } from './build.mjs';
import { dependenciesAreInstalled, installDependencies } from './dependencies.mjs';
import { withLock } from './file-lock.mjs';
import { projectRoot } from './project-root.mjs';
import { StartFailure } from './start-failure.mjs';

/** Node's oldest version that runs the product. */
const OLDEST_NODE = [20, 19];

/** Refuses a Node that is too old, before anything of it breaks in the dark. */
export function checkNodeVersion(version = process.versions.node) {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldestMajor = 0, oldestMinor = 0] = OLDEST_NODE;
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return;
  throw new StartFailure({
    what: 'This Node.js is too old',
    why: `Node.js ${version} runs here, ${OLDEST_NODE.join('.')} or newer is needed`,
    next: 'Install a current Node.js (for example with nvm install 24), then run it again.',
  });
}

/**
 * Installs the dependencies and builds, each only where it is needed. Two commands at once wait for each other.
 * @param {{ phases: import('./phases.mjs').Phases, signal?: AbortSignal | undefined, withBuild?: boolean }} options
 */
export async function setUp({ phases, signal, withBuild = true }) {
  checkNodeVersion();
  const data = dataFolder(join(projectRoot, '.data'));
  const ready = () => dependenciesAreInstalled(projectRoot) && (!withBuild || buildIsFresh(projectRoot));
  if (ready()) return;
  await withLock(data.setUpLock, { signal }, async () => {
    if (!dependenciesAreInstalled(projectRoot)) {
      await phases.run('Installing the dependencies (npm ci)', async (tell) => {
        await installDependencies(projectRoot, { logFile: join(data.logs, 'install.log'), signal });
        tell('Dependencies installed');
      });
    }
    if (withBuild && !buildIsFresh(projectRoot)) {
      await phases.run('Building', async (tell) => {
        await build(projectRoot, { logFile: join(data.logs, 'build.log'), signal });
        tell('Built');
      });
    }
  });
}
