import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { lastLines, runCommand } from './command.mjs';
import { StartFailure } from './start-failure.mjs';

const STAMP = 'dist/.built-sources';
const FOLDERS = ['apps', 'libs', 'scripts'];
const FILES = ['package.json', 'package-lock.json', 'nest-cli.json', 'tsconfig.json', 'tsconfig.build.json'];

/** Compilers' messages without colour codes, for the log and the screen. */
const PLAIN = { NO_COLOR: '1', FORCE_COLOR: undefined };

/**
 * Whether dist was made from the sources as they are now.
 * @param {string} root
 */
export function buildIsFresh(root) {
  const stamp = join(root, STAMP);
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === sourcesHash(root);
}

/**
 * Makes dist anew from the sources.
 * @param {string} root
 * @param {{ logFile: string, signal?: AbortSignal | undefined }} options
 */
export async function build(root, { logFile, signal }) {
  const hash = sourcesHash(root);
  rmSync(join(root, 'dist'), { recursive: true, force: true });
  const { code, tail } = await runCommand('npm', ['run', '--silent', 'build'], {
    cwd: root,
    env: PLAIN,
    logFile,
    signal,
  });
  if (code !== 0) {
    throw new StartFailure({
      what: 'The build failed',
      why: lastLines(tail, 12) || `npm run build ended with code ${code}`,
      next: 'Mend what the compiler names (npm run build shows it again), then run it again.',
      log: logFile,
    });
  }
  writeFileSync(join(root, STAMP), hash);
}

/**
 * A hash over the names and contents of everything that goes into dist.
 * @param {string} root
 */
export function sourcesHash(root) {
  const hash = createHash('sha256');
  const files = [...FILES, ...FOLDERS.flatMap((folder) => filesBelow(root, folder))];
  for (const file of files.sort()) {
    if (existsSync(join(root, file)))
      hash
        .update(`${file}\0`)
        .update(readFileSync(join(root, file)))
        .update('\0');
  }
  return hash.digest('hex');
}

/**
 * @param {string} root
 * @param {string} folder
 * @returns {string[]}
 */
function filesBelow(root, folder) {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return filesBelow(root, path);
    const belongs = /\.(ts|mts|mjs|lua|json)$/.test(entry.name) && !/\.(spec|e2e-spec)\.ts$/.test(entry.name);
    return belongs ? [path] : [];
  });
}
