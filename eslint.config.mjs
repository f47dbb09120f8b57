import tseslint from 'typescript-eslint';
import { driverOwners, importTable } from './architecture.mjs';

/** What a lib may not import: libs outside its row of the table, apps, other libs by path, drivers that belong to others. */
const boundaries = Object.entries(importTable).map(([lib, allowed]) => ({
  files: [`libs/${lib}/**/*.ts`],
  ignores: Object.values(driverOwners).flatMap(({ endings }) => endings.map((ending) => `**/*${ending}`)),
  rules: {
    'no-restricted-imports': [
      'error',
      {
        paths: Object.entries(driverOwners)
          .filter(([, { libs }]) => !libs.includes(lib))
          .map(([name]) => ({ name, message: `${name} belongs to ${driverOwners[name].libs.join(', ')}.` })),
        patterns: [
          {
            group: Object.keys(importTable)
              .filter((other) => other !== lib && !allowed.includes(other))
              .map((other) => `#${other}`),
            message: `The table in architecture.mjs does not let ${lib} import this.`,
          },
          { group: ['**/apps/**', '**/libs/**'], message: 'Import a lib by its face (#name); nobody imports apps.' },
        ],
      },
    ],
  },
}));

export default tseslint.config(
  { ignores: ['dist/**', 'node_modules/**', '.data/**', '**/*.mjs', '**/*.d.mts'] },
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/explicit-module-boundary-types': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      eqeqeq: 'error',
      'no-console': 'error',
    },
  },
  ...boundaries,
  {
    files: ['**/*.spec.ts', '**/*.e2e-spec.ts', 'test/**/*.ts', 'scripts/**/*.ts'],
    rules: {
      '@typescript-eslint/explicit-module-boundary-types': 'off',
      '@typescript-eslint/unbound-method': 'off',
      'no-console': 'off',
      'no-restricted-imports': 'off',
    },
  },
);
