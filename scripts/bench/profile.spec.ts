import { expect, it } from 'vitest';
import { type CpuProfile, profileTable, shares } from './profile.js';

const frame = (functionName: string, url = '') => ({ functionName, url });

it('gives each sample to the file it stands in, built-in functions to their caller, and none to idleness and the profiler', () => {
  const profile: CpuProfile = {
    nodes: [
      { id: 1, callFrame: frame('(root)'), children: [2, 3, 6, 7] },
      { id: 2, callFrame: frame('(idle)') },
      { id: 3, callFrame: frame('signs', 'file:///x/dist/libs/auth/src/hs256.js'), children: [4] },
      { id: 4, callFrame: frame('oneShotDigest'), children: [5] },
      { id: 5, callFrame: frame('writev') },
      { id: 6, callFrame: frame('post', 'node:inspector'), children: [8] },
      { id: 7, callFrame: frame('(garbage collector)') },
      { id: 8, callFrame: frame('dispatch') },
    ],
    samples: [2, 3, 4, 5, 6, 7, 8],
    timeDeltas: [1_000, 10, 30, 40, 500, 20, 500],
  };
  const found = shares(profile);
  expect(found).toEqual([
    { part: 'who is asking (libs/auth, fast-jwt)', share: 0.4 },
    { part: 'native code: writing to sockets', share: 0.4 },
    { part: 'garbage collection', share: 0.2 },
  ]);
  expect(profileTable(profile, 50)).toContain('| garbage collection | 20.0 % | 10.0 |');
});
