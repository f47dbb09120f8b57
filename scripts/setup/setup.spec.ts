import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { candidateMajor, noCandidate, plannedPackages } from './apt.mjs';
import { sourcesHash } from './build.mjs';
import { runCommand } from './command.mjs';
import { installedMatchesLock, installFailure } from './dependencies.mjs';
import { tryLock, withLock } from './file-lock.mjs';
import { versionIn } from './redis-binary.mjs';
import { checkNodeVersion } from './set-up.mjs';
import { Interrupted, StartFailure, tellFailure, toStartFailure } from './start-failure.mjs';
import { countTests } from './test-count.mjs';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'flash-sale-setup-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('what npm installed', () => {
  const host = { platform: 'linux', arch: 'x64' };
  const lock = {
    packages: {
      '': {},
      'node_modules/a': { version: '1.0.0' },
      'node_modules/b-linux': { version: '2.0.0', optional: true, os: ['linux'], cpu: ['x64'] },
      'node_modules/b-darwin': { version: '2.0.0', optional: true, os: ['darwin'], cpu: ['x64'] },
      'node_modules/b-musl': { version: '2.0.0', optional: true, os: ['linux'], cpu: ['x64'], libc: ['musl'] },
      'node_modules/b-wasm-part': { version: '1.0.0', optional: true },
    },
  };
  const installed = { 'node_modules/a': { version: '1.0.0' }, 'node_modules/b-linux': { version: '2.0.0' } };

  it('is complete although packages of other platforms are missing', () => {
    expect(installedMatchesLock(lock, { packages: installed }, host)).toBe(true);
  });
  it('is incomplete where a package is missing, has another version, or belongs to another platform', () => {
    expect(installedMatchesLock(lock, { packages: { 'node_modules/b-linux': { version: '2.0.0' } } }, host)).toBe(
      false,
    );
    expect(
      installedMatchesLock(lock, { packages: { ...installed, 'node_modules/a': { version: '1.0.1' } } }, host),
    ).toBe(false);
    expect(installedMatchesLock(lock, { packages: installed }, { platform: 'darwin', arch: 'x64' })).toBe(false);
  });
  it.each([
    ['npm error code ENOSPC\nnpm error syscall write', /space/],
    ['npm error code EAI_AGAIN\nnpm error request failed', /network/],
    ['npm error code EACCES', /right to write/],
    ['npm error code EUSAGE\nnpm error can only install when in sync', /npm install/],
    ['npm error something new', /log/],
  ])('names the remedy for %j', (output, next) => {
    const failure = installFailure(1, output, '/tmp/install.log');
    expect(failure.next).toMatch(next);
    expect(failure.why).not.toContain('npm error');
  });
});

describe('the build stamp', () => {
  it('changes with content, name and number of the sources, and not with tests', () => {
    mkdirSync(join(folder, 'libs/a'), { recursive: true });
    const write = (file: string, text: string) => writeFileSync(join(folder, 'libs/a', file), text);
    write('one.ts', '1');
    const seen = [sourcesHash(folder)];
    write('one.spec.ts', 'a test');
    expect(sourcesHash(folder)).toBe(seen[0]);
    write('one.ts', '2');
    seen.push(sourcesHash(folder));
    write('two.lua', '2');
    seen.push(sourcesHash(folder));
    rmSync(join(folder, 'libs/a/one.ts'));
    seen.push(sourcesHash(folder));
    expect(new Set(seen).size).toBe(4);
  });
});

describe('apt', () => {
  it('reads the candidate version with and without an epoch, and none', () => {
    expect(candidateMajor('redis-server:\n  Installed: (none)\n  Candidate: 5:7.0.15-1~deb12u10\n')).toBe(7);
    expect(candidateMajor('valkey-server:\n  Installed: (none)\n  Candidate: 8.1.1+dfsg1-3\n')).toBe(8);
    expect(candidateMajor('redis-server:\n  Candidate: (none)\n')).toBe(0);
    expect(candidateMajor('')).toBe(0);
  });
  it('plans new packages and leaves upgrades of the system out', () => {
    const simulation = [
      'Inst libc6 [2.36-9] (2.36-10 Debian:12 [amd64])',
      'Inst liblzf1 (3.6-3 Debian:12.11/oldstable [amd64])',
      'Inst redis-server (5:7.0.15-1~deb12u10 Debian-Security:12 [amd64])',
      'Conf liblzf1 (3.6-3 Debian:12.11/oldstable [amd64])',
    ].join('\n');
    expect(plannedPackages(simulation)).toEqual(['liblzf1=3.6-3', 'redis-server=5:7.0.15-1~deb12u10']);
  });
  it('tells an unreachable mirror from a distribution without the package', () => {
    expect(noCandidate({ code: 0, tail: 'Hit:1 bookworm InRelease\nReading package lists...' })).toMatch(
      /has no Redis/,
    );
    const tail =
      'Ign:1 bookworm\nErr:1 bookworm InRelease\n  Could not connect\nW: Failed to fetch it: Connection refused';
    expect(noCandidate({ code: 0, tail })).toContain('Connection refused');
  });
  it('reads the version that a server prints', () => {
    expect(versionIn('Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64')).toBe('7.0.15');
    expect(versionIn('Valkey server v=8.1.1 sha=0:0 malloc=jemalloc')).toBe('8.1.1');
    expect(versionIn('something else')).toBeUndefined();
  });
});

describe('the lock file', () => {
  it('is held by one, names its holder, and is free after the release', () => {
    const file = join(folder, 'deep/lock');
    const first = tryLock(file);
    expect(tryLock(file)).toEqual({ holderPid: process.pid });
    if (!('release' in first)) throw new Error('the first must hold it');
    first.release();
    expect(tryLock(file)).toHaveProperty('release');
  });
  it.each(['{"pid":1,"startedAt":"long ago"}', 'no json', ''])(
    'of a holder that has died (%j) is taken over',
    (text) => {
      const file = join(folder, 'lock');
      writeFileSync(file, text);
      expect(tryLock(file)).toHaveProperty('release');
    },
  );
  it('lets two commands work one after the other', async () => {
    const file = join(folder, 'lock');
    let inside = 0;
    const work = async () => {
      inside += 1;
      expect(inside).toBe(1);
      await new Promise((resolve) => setImmediate(resolve));
      inside -= 1;
    };
    await Promise.all([withLock(file, {}, work), withLock(file, {}, work)]);
    expect(inside).toBe(0);
  });
});

describe('a command', () => {
  it('gives its code, its output and a log', async () => {
    const logFile = join(folder, 'logs/c.log');
    const result = await runCommand('sh', ['-c', 'echo out; echo err >&2; exit 3'], { logFile });
    expect(result).toMatchObject({ code: 3, stdout: 'out\n' });
    expect(readFileSync(logFile, 'utf8')).toContain('err');
  });
  it('that does not exist has the code 127, one beyond its time 124', async () => {
    expect((await runCommand('no-such-command-here', [])).code).toBe(127);
    expect((await runCommand('sleep', ['30'], { timeoutMs: 50 })).code).toBe(124);
  });
  it('ends with its whole group when it is interrupted', async () => {
    const stop = new AbortController();
    const running = runCommand('sh', ['-c', 'sleep 60 & wait'], { signal: stop.signal });
    stop.abort();
    await expect(running).rejects.toBeInstanceOf(Interrupted);
  });
});

describe('a failure', () => {
  it('tells what, why, next and the log, without a stack', () => {
    const failure = new StartFailure({
      what: 'Port 3000 is taken',
      why: 'pid 7',
      next: 'PORT=3001 npm start',
      log: '/x',
    });
    expect(tellFailure(failure, 'npm start', undefined).split('\n')).toEqual([
      'npm start stopped: Port 3000 is taken.',
      '  why:  pid 7',
      '  next: PORT=3001 npm start',
      '  log:  /x',
    ]);
    expect(tellFailure(failure, 'npm start', 'debug')).toContain('setup.spec.ts');
  });
  it.each([
    ['ENOSPC', /space/],
    ['EACCES', /right/],
    ['EROFS', /read-only/],
  ])('of the system (%s) has a remedy', (code, next) => {
    expect(toStartFailure(Object.assign(new Error('no'), { code, path: '/x' }), 'Writing').next).toMatch(next);
  });
  it('is the answer to a Node.js that is too old', () => {
    for (const version of ['18.20.0', '20.18.3']) expect(() => checkNodeVersion(version)).toThrow(StartFailure);
    for (const version of ['20.19.0', '22.0.0', '24.11.1']) expect(() => checkNodeVersion(version)).not.toThrow();
  });
});

describe('the last line of npm test', () => {
  const file = (status: string, tests: string[]) => ({
    status,
    assertionResults: tests.map((test) => ({ status: test })),
  });
  it('counts tests, and a file that could not be run as one failure', () => {
    const report = {
      numPassedTests: 5,
      numFailedTests: 1,
      testResults: [file('passed', ['passed']), file('failed', ['failed'])],
    };
    expect(countTests(JSON.stringify(report), 1)).toEqual({ passed: 5, failed: 1 });
    report.testResults.push(file('failed', []));
    expect(countTests(JSON.stringify(report), 1)).toEqual({ passed: 5, failed: 2 });
  });
  it('never says 0 failed of a run that failed or left no report', () => {
    expect(countTests(JSON.stringify({ numPassedTests: 5, numFailedTests: 0, testResults: [] }), 1)).toEqual({
      passed: 5,
      failed: 1,
    });
    expect(countTests('', 0)).toEqual({ passed: 0, failed: 1 });
  });
});
