import nx from '@nx/eslint-plugin';
import tseslint from 'typescript-eslint';

/** Who may import whom. docs/ARCHITECTURE.md has the same table with the reasons. */
const depConstraints = [
  { sourceTag: 'type:contract', onlyDependOnLibsWithTags: ['type:contract'], allowedExternalImports: ['zod'] },
  { sourceTag: 'type:kernel', onlyDependOnLibsWithTags: ['type:contract'], allowedExternalImports: ['zod'] },
  { sourceTag: 'type:domain', onlyDependOnLibsWithTags: ['type:contract', 'type:kernel'], allowedExternalImports: ['zod'] },
  { sourceTag: 'type:shell', onlyDependOnLibsWithTags: ['type:contract', 'type:kernel'] },
  { sourceTag: 'type:feature', onlyDependOnLibsWithTags: ['type:contract', 'type:kernel', 'type:domain', 'type:shell'] },
  { sourceTag: 'type:infra', onlyDependOnLibsWithTags: ['type:contract', 'type:kernel', 'type:domain'] },
  { sourceTag: 'type:testing', onlyDependOnLibsWithTags: ['*'] },
  { sourceTag: 'type:app', onlyDependOnLibsWithTags: ['type:contract', 'type:kernel', 'type:domain', 'type:feature', 'type:shell', 'type:infra', 'type:wiring'] },
  { sourceTag: 'type:wiring', onlyDependOnLibsWithTags: ['type:contract', 'type:kernel', 'type:domain', 'type:feature', 'type:shell', 'type:infra'] },
];

const reason = 'The domain is pure: take time, chance and the outside world as data or through a port.';
const pure = {
  'no-restricted-globals': ['error', ...['process', 'fetch', 'setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask', 'performance', 'crypto', 'Buffer', 'console'].map((name) => ({ name, message: reason }))],
  'no-restricted-properties': ['error', { object: 'Date', property: 'now', message: reason }, { object: 'Math', property: 'random', message: reason }],
  'no-restricted-syntax': ['error', { selector: "NewExpression[callee.name='Date'][arguments.length=0]", message: reason }],
  'no-restricted-imports': ['error', { patterns: [{ group: ['node:*', 'fs', 'path', 'os', 'crypto', 'net', 'http', 'child_process', '@nestjs/*', '@nats-io/*', '@mikro-orm/*', 'rxjs'], message: reason }] }],
};

export default tseslint.config(
  { ignores: ['**/dist/**', '**/node_modules/**', '.nx/**', '.penstock/**', 'coverage/**'] },
  {
    files: ['**/*.ts'],
    languageOptions: { parser: tseslint.parser, parserOptions: { projectService: false, project: './tsconfig.json', tsconfigRootDir: import.meta.dirname } },
    plugins: { '@nx': nx, '@typescript-eslint': tseslint.plugin },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: false }],
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/ban-ts-comment': 'error',
      '@typescript-eslint/consistent-type-imports': 'off',
      eqeqeq: 'error',
      'no-var': 'error',
      'prefer-const': 'error',
      'no-console': 'error',
      'max-lines': ['error', { max: 400, skipBlankLines: true, skipComments: true }],
      'max-lines-per-function': ['error', { max: 70, skipBlankLines: true, skipComments: true, IIFEs: true }],
    },
  },
  {
    files: ['apps/*/src/**/*.ts', 'libs/*/*/src/**/*.ts'],
    // The kit may import everything, and everybody's tests import the kit: to Nx that looks like a circle.
    ignores: ['**/*.test.ts', '**/*-suite.ts', 'libs/testing/**'],
    // The kit implements ports, and the tests of the libraries that own them use the kit: a circle of projects, not of files.
    rules: { '@nx/enforce-module-boundaries': ['error', { depConstraints, enforceBuildableLibDependency: false, allow: [], checkDynamicDependenciesExceptions: ['.*'], ignoredCircularDependencies: [['@penstock/testing-kit', '*']] }] },
  },
  { files: ['libs/domain/*/src/**/*.ts', 'libs/contract/*/src/**/*.ts'], ignores: ['**/*.test.ts'], rules: pure },
  { files: ['**/*.test.ts', 'test/**/*.ts', 'libs/testing/**/*.ts'], rules: { 'max-lines-per-function': 'off', 'no-console': 'off', '@typescript-eslint/no-floating-promises': 'error' } },
  { files: ['apps/**/*.ts'], rules: { 'no-console': 'off' } },
);
