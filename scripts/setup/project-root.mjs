import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder with the project's package.json; found from the sources and from their copy in dist alike. */
export const projectRoot = findRoot(dirname(fileURLToPath(import.meta.url)));

/**
 * @param {string} folder
 * @returns {string}
 */
function findRoot(folder) {
  if (existsSync(join(folder, 'package.json'))) return folder;
  const parent = dirname(folder);
  if (parent === folder) throw new Error('no package.json above the scripts');
  return findRoot(parent);
}
