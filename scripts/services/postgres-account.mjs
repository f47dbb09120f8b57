import { execFileSync } from 'node:child_process';
import { chownSync, existsSync, lstatSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { StartFailure } from '../setup/start-failure.mjs';

/**
 * As whom PostgreSQL runs. `prefix` goes before its command line; `owner` is the user and group whose files its data must be, seen from here.
 * @typedef {{ prefix: string[], spawn: { uid?: number, gid?: number }, owner: { uid: number, gid: number } | undefined }} PostgresAccount
 */

const NOBODY = 65534;
const USER_NAMESPACE = ['unshare', '--user', '--map-user=1000', '--map-group=1000', '--'];

/**
 * Runs as the user, who may still pass through folders that are closed to him.
 * @param {{ uid: number, gid: number }} user
 */
function passingEverywhere({ uid, gid }) {
  const ids = [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'];
  return [
    'setpriv',
    ...ids,
    '--securebits=+no_setuid_fixup',
    '--inh-caps=+dac_override',
    '--ambient-caps=+dac_override',
    '--',
  ];
}

/**
 * PostgreSQL refuses to run as root. An ordinary user runs it himself. For root it is an unprivileged user where that user can reach the
 * binaries and the data; where a folder above is closed (such as /root, mode 0700), a user name space in which root's own files belong to uid 1000; where
 * those are forbidden (containers), the unprivileged user with the one capability to pass through closed folders.
 * @param {{ dir: string, bin: string }} places
 * @returns {PostgresAccount}
 */
export function postgresAccount({ dir, bin }) {
  if (process.getuid?.() !== 0) return { prefix: [], spawn: {}, owner: undefined };
  const user = unprivilegedUser(dir);
  if (canReach(bin, user) && canReach(dirname(dir), user)) return { prefix: [], spawn: user, owner: user };
  if (works(USER_NAMESPACE)) return { prefix: USER_NAMESPACE, spawn: {}, owner: { uid: 0, gid: 0 } };
  if (works(passingEverywhere(user))) return { prefix: passingEverywhere(user), spawn: {}, owner: user };
  throw new StartFailure({
    what: 'PostgreSQL cannot run here',
    why: `it refuses to run as root, and other users cannot reach ${canReach(bin, user) ? dirname(dir) : bin}`,
    next: 'Run it as an ordinary user, or move the clone to a folder that others may enter (such as /srv), or set DATABASE_URL.',
  });
}

/**
 * The owner of the data, or of the folder it stands in, if that is not root; else nobody.
 * @param {string} dir
 */
function unprivilegedUser(dir) {
  for (const place of [dir, dirname(dir), dirname(dirname(dir))]) {
    if (!existsSync(place)) continue;
    const { uid, gid } = statSync(place);
    if (uid !== 0) return { uid, gid };
  }
  return { uid: NOBODY, gid: NOBODY };
}

/**
 * Whether the user may pass through every folder down to this one.
 * @param {string} folder
 * @param {{ uid: number, gid: number }} user
 * @returns {boolean}
 */
export function canReach(folder, { uid, gid }) {
  const { mode, uid: ownerUid, gid: ownerGid } = statSync(folder);
  const enter = uid === ownerUid ? 0o100 : gid === ownerGid ? 0o010 : 0o001;
  if ((mode & enter) === 0) return false;
  return dirname(folder) === folder || canReach(dirname(folder), { uid, gid });
}

/** @param {string[]} prefix */
function works(prefix) {
  const [command = '', ...args] = prefix;
  try {
    execFileSync(command, [...args, 'true'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/**
 * Gives the data to the account where it belongs to somebody else (the clone was moved, or was used by another user before).
 * @param {string} dir
 * @param {PostgresAccount} account
 */
export function giveData(dir, { owner }) {
  const { uid } = statSync(dir);
  if (owner === undefined) {
    if (uid === process.getuid?.() || process.getuid === undefined) return;
    throw new StartFailure({
      what: 'The database folder belongs to another user',
      why: `${dir} belongs to ${userName(uid)}, and this command runs as ${userName(process.getuid())}`,
      next: `Run it as ${userName(uid)}; or hand the data over: sudo chown -R ${process.getuid()} ${dirname(dir)}`,
    });
  }
  if (uid !== owner.uid) chownBelow(dir, owner);
}

/**
 * @param {string} path
 * @param {{ uid: number, gid: number }} owner
 */
function chownBelow(path, owner) {
  const entry = lstatSync(path);
  if (entry.isSymbolicLink()) return;
  chownSync(path, owner.uid, owner.gid);
  if (entry.isDirectory()) for (const name of readdirSync(path)) chownBelow(join(path, name), owner);
}

/** @param {number} uid */
function userName(uid) {
  try {
    const line = readFileSync('/etc/passwd', 'utf8')
      .split('\n')
      .find((entry) => entry.split(':')[2] === String(uid));
    return line === undefined ? `uid ${uid}` : `${line.split(':')[0]} (uid ${uid})`;
  } catch {
    return `uid ${uid}`;
  }
}
