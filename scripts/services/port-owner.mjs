import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { createServer } from 'node:net';

/**
 * Whether a server could listen there now: undefined if so, else the system's error code (EADDRINUSE, EACCES, EADDRNOTAVAIL, ...).
 * @param {string} host
 * @param {number} port
 * @returns {Promise<string | undefined>}
 */
export function listenFault(host, port) {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error) => resolve(/** @type {NodeJS.ErrnoException} */ (error).code ?? error.message));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

/**
 * Who listens on a TCP port, in words: "pid 4711 (node server.js)"; undefined where the system does not tell.
 * @param {number} port
 * @returns {string | undefined}
 */
export function portOwner(port) {
  const listener = findListener(port);
  if (listener === undefined) return undefined;
  if ('pid' in listener) return `pid ${listener.pid} (${listener.command})`;
  return `a process of the user with uid ${listener.uid}`;
}

/**
 * Whether the process may be the one that listens on the port: false only where the system names another.
 * @param {number} port
 * @param {number | undefined} pid
 */
export function mayListen(port, pid) {
  const listener = findListener(port);
  return listener === undefined || ('pid' in listener && listener.pid === pid);
}

/**
 * @param {number} port
 * @returns {{ pid: number, command: string } | { uid: string } | undefined}
 */
function findListener(port) {
  try {
    return process.platform === 'linux' ? linuxListener(port) : lsofListener(port);
  } catch {
    return undefined;
  }
}

/** @param {number} port */
function linuxListener(port) {
  const sockets = ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((file) => listeners(readOrEmpty(file), port));
  if (sockets.length === 0) return undefined;
  const links = new Set(sockets.map(({ inode }) => `socket:[${inode}]`));
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const pid = pids.find((name) => holdsSocket(name, links));
  if (pid !== undefined) return { pid: Number(pid), command: commandLine(pid) };
  return { uid: sockets[0]?.uid ?? 'unknown' };
}

/**
 * The listening sockets of a port in the text of /proc/net/tcp.
 * @param {string} table
 * @param {number} port
 * @returns {{ inode: string, uid: string }[]}
 */
export function listeners(table, port) {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return table
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields[3] === '0A' && fields[1]?.endsWith(suffix))
    .map((fields) => ({ inode: fields[9] ?? '', uid: fields[7] ?? '' }));
}

/**
 * @param {string} pid
 * @param {Set<string>} links
 */
function holdsSocket(pid, links) {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => {
      try {
        return links.has(readlinkSync(`/proc/${pid}/fd/${fd}`));
      } catch {
        return false;
      }
    });
  } catch {
    return false;
  }
}

/** @param {string} pid */
function commandLine(pid) {
  const words = readOrEmpty(`/proc/${pid}/cmdline`).split('\0').join(' ').trim();
  return (words || readOrEmpty(`/proc/${pid}/comm`).trim() || 'unknown').slice(0, 80);
}

/** @param {string} file */
function readOrEmpty(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/** @param {number} port */
function lsofListener(port) {
  const answer = execFileSync('lsof', ['-nP', `-iTCP:${port}`, '-sTCP:LISTEN', '-Fpc'], { encoding: 'utf8' });
  const pid = /^p(\d+)$/m.exec(answer)?.[1];
  return pid === undefined ? undefined : { pid: Number(pid), command: /^c(.+)$/m.exec(answer)?.[1] ?? 'unknown' };
}
