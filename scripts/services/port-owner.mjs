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
  try {
    return process.platform === 'linux' ? linuxOwner(port) : lsofOwner(port);
  } catch {
    return undefined;
  }
}

/** @param {number} port */
function linuxOwner(port) {
  const sockets = ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((file) => listeners(readOrEmpty(file), port));
  if (sockets.length === 0) return undefined;
  const links = new Set(sockets.map(({ inode }) => `socket:[${inode}]`));
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    if (holdsSocket(pid, links)) return `pid ${pid} (${commandLine(pid)})`;
  }
  return `a process of the user with uid ${sockets[0]?.uid}`;
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
function lsofOwner(port) {
  const answer = execFileSync('lsof', ['-nP', `-iTCP:${port}`, '-sTCP:LISTEN', '-Fpc'], { encoding: 'utf8' });
  const pid = /^p(\d+)$/m.exec(answer)?.[1];
  return pid === undefined ? undefined : `pid ${pid} (${/^c(.+)$/m.exec(answer)?.[1] ?? 'unknown'})`;
}
