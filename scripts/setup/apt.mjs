import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { lastLines, runCommand } from './command.mjs';

const PACKAGES = ['redis-server', 'valkey-server'];
const OLDEST_MAJOR = 7;

export function aptIsThere() {
  return existsSync('/usr/bin/apt-get') && existsSync('/usr/bin/dpkg');
}

/** @typedef {import('./redis-binary.mjs').InstallOptions} InstallOptions */

/**
 * Installs with the system's package manager and leaves no server running that this caused.
 * @param {string[]} prefix how to become root: [] or ['sudo', '-n']
 * @returns {(options: InstallOptions) => Promise<string | undefined>} what went wrong, in words
 */
export function installWithApt(prefix) {
  return async ({ logFile, signal }) => {
    // RUNLEVEL=1 keeps Debian's start-on-installation quiet where there is no systemd; with systemd the unit is switched off below.
    const env = ['env', 'RUNLEVEL=1', 'DEBIAN_FRONTEND=noninteractive'];
    /** @param {string[]} args */
    const root = (...args) => {
      const [command = '', ...rest] = [...prefix, ...env, ...args];
      return runCommand(command, rest, { logFile, signal });
    };
    const lockWait = ['-o', 'DPkg::Lock::Timeout=120'];
    const wasThere = (await runCommand('dpkg', ['-s', ...PACKAGES], { signal })).stdout.includes('Status: install ok');
    let name = await candidate([], signal);
    let result =
      name === undefined
        ? undefined
        : await root('apt-get', ...lockWait, 'install', '-y', '-q', '--no-install-recommends', name);
    if (result?.code !== 0) {
      const update = await root('apt-get', ...lockWait, 'update', '-q');
      name = await candidate([], signal);
      if (name === undefined) {
        return noCandidate(update);
      }
      result = await root('apt-get', ...lockWait, 'install', '-y', '-q', '--no-install-recommends', name);
    }
    if (!wasThere) await switchOff(root, name ?? 'redis-server');
    return result.code === 0 ? undefined : lastLines(result.tail, 2);
  };
}

/**
 * @param {(...args: string[]) => Promise<unknown>} root
 * @param {string} unit
 */
async function switchOff(root, unit) {
  if (existsSync('/run/systemd/system')) await root('systemctl', 'disable', '--now', unit);
  else if (existsSync(`/etc/init.d/${unit}`)) await root(`/etc/init.d/${unit}`, 'stop');
}

/**
 * Why there is nothing to install: apt-get update ends with 0 although it reached no server.
 * @param {{ code: number, tail: string }} update
 */
export function noCandidate({ code, tail }) {
  const failed = tail.split('\n').filter((line) => /^(E:|Err:|W: Failed to fetch)/.test(line));
  if (code === 0 && failed.length === 0) return 'the distribution has no Redis 7.0 or newer';
  return lastLines(failed.join('\n') || tail, 2);
}

/**
 * The first package whose candidate version is new enough.
 * @param {string[]} options apt options that point to other lists
 * @param {AbortSignal | undefined} signal
 */
async function candidate(options, signal) {
  for (const name of PACKAGES) {
    const { stdout } = await runCommand('apt-cache', [...options, 'policy', name], { signal, env: { LC_ALL: 'C' } });
    if (candidateMajor(stdout) >= OLDEST_MAJOR) return name;
  }
  return undefined;
}

/**
 * The major version of the candidate in what `apt-cache policy` prints; 0 where there is none.
 * @param {string} policy
 */
export function candidateMajor(policy) {
  return Number(/^\s*Candidate: (?:\d+:)?(\d+)/m.exec(policy)?.[1] ?? 0);
}

/**
 * Downloads the server and the libraries it lacks with lists and caches of its own, and unpacks them into `<tools>/redis`; the system stays as it is.
 * `<tools>/bin/redis-server` then runs it with those libraries.
 * @param {InstallOptions} options
 * @returns {Promise<string | undefined>} what went wrong, in words
 */
export async function unpackWithApt({ tools, logFile, signal }) {
  const apt = privateApt(join(tools, 'apt'));
  const update = await runCommand('apt-get', [...apt, 'update', '-q'], { logFile, signal });
  const name = await candidate(apt, signal);
  if (name === undefined) return noCandidate(update);
  const plan = await runCommand('apt-get', [...apt, 'install', '-s', '--no-install-recommends', name], {
    logFile,
    signal,
    env: { LC_ALL: 'C' },
  });
  const packages = plannedPackages(plan.stdout);
  if (packages.length === 0) return lastLines(plan.tail, 2);
  const debs = join(tools, 'apt/debs');
  rmSync(debs, { recursive: true, force: true });
  mkdirSync(debs, { recursive: true });
  const download = await runCommand('apt-get', [...apt, 'download', '-q', ...packages], { cwd: debs, logFile, signal });
  if (download.code !== 0) return lastLines(download.tail, 2);
  const unpacked = join(tools, 'redis');
  rmSync(unpacked, { recursive: true, force: true });
  mkdirSync(unpacked, { recursive: true });
  for (const deb of readdirSync(debs)) {
    const result = await runCommand('dpkg', ['-x', join(debs, deb), unpacked], { logFile, signal });
    if (result.code !== 0) return lastLines(result.tail, 2);
  }
  writeLauncher(tools, name);
  rmSync(join(tools, 'apt'), { recursive: true, force: true });
  return undefined;
}

/**
 * Options that keep apt's state and cache inside the folder, and read the system's only to know what is installed.
 * @param {string} folder
 */
function privateApt(folder) {
  for (const place of ['lists/partial', 'cache/archives/partial', 'log'])
    mkdirSync(join(folder, place), { recursive: true });
  return [
    `Dir::State=${folder}`,
    `Dir::State::lists=${folder}/lists`,
    'Dir::State::status=/var/lib/dpkg/status',
    `Dir::State::extended_states=${folder}/extended_states`,
    `Dir::Cache=${folder}/cache`,
    `Dir::Log=${folder}/log`,
    'Debug::NoLocking=1',
    'APT::Sandbox::User=',
    'APT::Get::List-Cleanup=false',
  ].flatMap((option) => ['-o', option]);
}

/**
 * The packages that `apt-get install -s` would newly install, as name=version. Upgrades are left out: the system's own library serves.
 * @param {string} simulation
 */
export function plannedPackages(simulation) {
  return [...simulation.matchAll(/^Inst (\S+) \((\S+) /gm)].map(([, name, version]) => `${name}=${version}`);
}

/**
 * @param {string} tools
 * @param {string} name
 */
function writeLauncher(tools, name) {
  mkdirSync(join(tools, 'bin'), { recursive: true });
  const launcher = join(tools, 'bin', name);
  writeFileSync(
    launcher,
    `#!/bin/sh
# Runs the unpacked ${name} with the libraries that were unpacked beside it.
tools=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
for folder in "$tools"/redis/usr/lib/*-linux-* "$tools"/redis/lib/*-linux-*; do
  if [ -d "$folder" ]; then LD_LIBRARY_PATH="$folder\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"; fi
done
export LD_LIBRARY_PATH
exec "$tools/redis/usr/bin/${name}" "$@"
`,
  );
  chmodSync(launcher, 0o755);
}
