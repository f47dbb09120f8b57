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
    setupFiles: ['./test/support/metadata.ts', './test/support/patience.ts'],
    globalSetup: ['./test/support/postgres.global.ts'],
    pool: 'forks',
    maxWorkers: 2,
    // Limits that only a test that hangs meets: a busy machine is slow, not wrong.
    testTimeout: 90_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 20_000 } },
  },
});
