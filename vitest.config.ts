import { defaultServerConditions } from 'vite';
import { defineConfig } from 'vitest/config';

// The condition `source` makes the package.json imports (#redis, #orders, ...) resolve to TypeScript instead of dist.
const conditions = ['source', ...defaultServerConditions];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: [
      'libs/**/*.spec.ts',
      'apps/**/*.spec.ts',
      'scripts/**/*.spec.ts',
      'test/**/*.spec.ts',
      'test/**/*.e2e-spec.ts',
    ],
    setupFiles: ['./test/support/metadata.ts'],
    globalSetup: ['./test/support/postgres.global.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
