import { defaultServerConditions } from 'vite';
import { defineConfig } from 'vitest/config';

const conditions = ['source', ...defaultServerConditions];

/** `npm run test:cluster`: real clusters and sentinels under faults. One file at a time: each starts a dozen processes. */
export default defineConfig({
  root: new URL('../..', import.meta.url).pathname,
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ['test/cluster/*.cluster-spec.ts'],
    pool: 'forks',
    fileParallelism: false,
    bail: 0,
    testTimeout: 240_000,
    hookTimeout: 240_000,
  },
});
