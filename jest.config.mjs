// One root run with one Jest project per workspace project, so that `--selectProjects NAME` and Nx both work.
import { readdirSync, readFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';

const root = import.meta.dirname;
const groups = ['apps', 'libs/contract', 'libs/domain', 'libs/feature', 'libs/infra', 'libs/testing'];
const { $schema, ...swc } = JSON.parse(readFileSync(join(root, '.swcrc.json'), 'utf8'));

const shared = {
  rootDir: root,
  testEnvironment: 'node',
  testEnvironmentOptions: { customExportConditions: ['@penstock/source', 'node', 'node-addons'] },
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  moduleFileExtensions: ['ts', 'js', 'mjs', 'cjs', 'json', 'node'],
  transform: { '^.+\\.ts$': ['@swc/jest', { ...swc, swcrc: false }] },
  transformIgnorePatterns: ['/node_modules/', '/dist/'],
  modulePathIgnorePatterns: ['<rootDir>/.*/dist/', '<rootDir>/.penstock/', '<rootDir>/.nx/'],
  setupFiles: ['reflect-metadata'],
};

const folders = groups.flatMap((group) =>
  existsSync(join(root, group))
    ? readdirSync(join(root, group), { withFileTypes: true })
        .filter((entry) => entry.isDirectory() && existsSync(join(root, group, entry.name, 'package.json')))
        .map((entry) => `${group}/${entry.name}`)
    : [],
);

const nameOf = (folder) => JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')).name;

export default {
  testTimeout: 60_000,
  maxWorkers: 2,
  // ES modules of finished files stay in a worker's heap. One that ends with a gigabyte of them takes longer to be torn down than the half
  // second that Jest grants, which then speaks of open handles; such a worker is replaced between two files instead.
  workerIdleMemoryLimit: '256MB',
  projects: [
    ...folders.map((folder) => ({ ...shared, displayName: nameOf(folder), testMatch: [`<rootDir>/${folder}/src/**/*.test.ts`] })),
    { ...shared, displayName: 'workspace', testMatch: ['<rootDir>/test/**/*.test.ts'] },
  ],
};
