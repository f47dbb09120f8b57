import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { driverOwners, importTable } from '../architecture.mjs';

const root = join(import.meta.dirname, '..');
const tracked = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => file !== '');
const read = (file: string): string => readFileSync(join(root, file), 'utf8');
const isTest = (file: string): boolean => /\.(spec|e2e-spec)\.ts$/.test(file) || file.startsWith('test/');
const sources = tracked.filter(
  (file) => /^(apps|libs|scripts|test)\/.*\.(ts|mts|mjs)$/.test(file) && !file.endsWith('.d.mts'),
);
const product = sources.filter((file) => !isTest(file));

interface Import {
  readonly file: string;
  readonly from: string;
}

/** Every static import and re-export of a file, type-only ones too. */
function importsOf(file: string, text: string): Import[] {
  return [
    ...text.matchAll(/^\s*(?:import|export)\b[^'";]*?from\s+'([^']+)'|^\s*import\s+'([^']+)'|import\('([^']+)'\)/gm),
  ].map((match) => ({
    file,
    from: match[1] ?? match[2] ?? match[3] ?? '',
  }));
}

const libOf = (file: string): string | undefined => /^libs\/([^/]+)\//.exec(file)?.[1];

/** The sentences in which an import breaks the table of architecture.mjs. */
function importFault({ file, from }: Import): string | undefined {
  const lib = libOf(file);
  const target = /^#([^/]+)/.exec(from)?.[1];
  if (target !== undefined && lib !== undefined && target !== lib && !(importTable[lib] ?? []).includes(target)) {
    return `${file}: ${lib} may not import #${target}`;
  }
  if (/(^|\/)(apps|libs)\//.test(from) && file.startsWith('libs/')) return `${file}: imports ${from} by path`;
  const driver = driverOwners[from.split('/')[0] ?? ''];
  if (
    driver !== undefined &&
    lib !== undefined &&
    !driver.libs.includes(lib) &&
    !driver.endings.some((ending) => file.endsWith(ending))
  ) {
    return `${file}: ${from} belongs to ${driver.libs.join(', ')}`;
  }
  return undefined;
}

/** Functions of more than `limit` lines, as `file:line name (lines)`. */
function longFunctions(file: string, text: string, limit: number): string[] {
  const found: string[] = [];
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.ES2023, true);
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && 'body' in node && node.body !== undefined) {
      const start = source.getLineAndCharacterOfPosition(node.getStart()).line;
      const lines = source.getLineAndCharacterOfPosition(node.getEnd()).line - start + 1;
      if (lines > limit) found.push(`${file}:${start + 1} (${lines} lines)`);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

describe('the rules can fail', () => {
  it('names an import outside the table, a path into another lib, and a foreign driver', () => {
    expect(importFault({ file: 'libs/voucher-order/src/a.ts', from: '#stream-consumer' })).toContain('may not import');
    expect(importFault({ file: 'libs/voucher-order/src/a.ts', from: '../../../libs/redis/src/x.js' })).toContain(
      'by path',
    );
    expect(importFault({ file: 'libs/voucher-order/src/a.ts', from: 'ioredis' })).toContain('belongs to');
    expect(importFault({ file: 'libs/orders/src/order.repository.ts', from: 'typeorm' })).toBeUndefined();
    expect(importsOf('a.ts', "import {\n  a,\n} from '#x';\nexport * from './b.js';")).toHaveLength(2);
  });
  it('names a function that is too long', () => {
    expect(longFunctions('a.ts', `function f() {\n${'\n'.repeat(5)}}`, 5)).toHaveLength(1);
    expect(longFunctions('a.ts', `function f() {\n${'\n'.repeat(2)}}`, 5)).toHaveLength(0);
  });
});

describe('the house', () => {
  it('keeps the import table', () => {
    const imports = product.flatMap((file) => importsOf(file, read(file)));
    expect(imports.length).toBeGreaterThan(50);
    expect(imports.map(importFault).filter((fault) => fault !== undefined)).toEqual([]);
  });

  it('has a face for every lib of the table, and no lib outside it', () => {
    const libs = new Set(sources.map(libOf).filter((lib) => lib !== undefined));
    expect([...libs].sort()).toEqual(Object.keys(importTable).sort());
    for (const lib of libs) expect(tracked).toContain(`libs/${lib}/src/index.ts`);
  });

  it('shows the same table in ARCHITECTURE.md', () => {
    const page = read('ARCHITECTURE.md');
    for (const [lib, allowed] of Object.entries(importTable)) {
      const row = new RegExp(`^\\| ${lib} \\|[^|]*\\| ([^|]*) \\|$`, 'm').exec(page)?.[1];
      expect(row, lib).toBe(allowed.length === 0 ? 'nothing of ours' : allowed.join(', '));
    }
  });

  it('reads the environment in env.ts only', () => {
    const readers = product.filter((file) => /^(apps|libs)\/.*\.ts$/.test(file) && /process\.env\b/.test(read(file)));
    expect(readers.filter((file) => file !== 'libs/config/src/env.ts')).toEqual([]);
  });

  it('keeps functions within 70 lines and files within 300', () => {
    const files = product.filter((file) => file.endsWith('.ts'));
    expect(files.flatMap((file) => longFunctions(file, read(file), 70))).toEqual([]);
    expect(files.filter((file) => read(file).split('\n').length > 301)).toEqual([]);
  });

  it('uses names that say what stands there', () => {
    expect(tracked.filter((file) => /(^|[/.-])(utils?|helpers?|common|misc|managers?)([/.-]|$)/i.test(file))).toEqual(
      [],
    );
  });

  it('gives every script its header: purpose, KEYS, ARGV, replies', () => {
    const scripts = tracked.filter((file) => file.endsWith('.lua'));
    expect(scripts.length).toBeGreaterThan(5);
    for (const script of scripts) {
      const header =
        read(script)
          .split('\n')
          .slice(1)
          .join('\n')
          .split(/\n(?!--)/)[0] ?? '';
      expect(read(script).startsWith('#!lua'), `${script} starts with #!lua`).toBe(true);
      for (const word of ['KEYS', 'ARGV', 'Repl'])
        expect(header, `${basename(script)}: header says ${word}`).toContain(word);
    }
  });

  it('skips and singles out no test, and waits for no fixed time in one', () => {
    const tests = sources.filter((file) => isTest(file) && file !== 'test/tidy.spec.ts');
    expect(tests.filter((file) => /\b(it|test|describe)\.(skip|only|todo)\b/.test(read(file)))).toEqual([]);
    expect(tests.filter((file) => /await (sleep|delay)\(/.test(read(file)))).toEqual([]);
  });

  it('names no download address in the lock file', () => {
    expect(read('package-lock.json')).not.toMatch(/"resolved": "https?:/);
  });
});
