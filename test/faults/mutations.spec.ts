import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { applyPatch, mutations } from './mutations.js';
import { scenarios } from './scenarios/index.js';

const dist = join(import.meta.dirname, '../../dist');

describe('the mutations', () => {
  it.each(mutations.map((mutation) => [mutation.name, mutation] as const))(
    'really take a safeguard away from what is built: %s',
    (_name, { patches, scenario }) => {
      expect(scenarios.map(({ id }) => id)).toContain(scenario);
      for (const patch of patches) {
        const file = join(dist, patch.file);
        expect(existsSync(file), `${file}: npm run build`).toBe(true);
        const before = readFileSync(file, 'utf8');
        expect(applyPatch(before, patch)).not.toBe(before);
      }
    },
  );

  it('fail loudly where their text is not there', () => {
    const patch = { file: 'a.js', find: 'guard', replace: '' };
    expect(() => applyPatch('nothing', patch)).toThrow('0 times');
    expect(() => applyPatch('guard guard', patch)).toThrow('2 times');
  });
});
