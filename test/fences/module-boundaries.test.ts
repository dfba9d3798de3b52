import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { repositoryRoot } from '../contracts/files.js';

const root = repositoryRoot(import.meta.dirname);
const env = { ...process.env, NX_DAEMON: 'false', NX_NO_CLOUD: 'true', NODE_OPTIONS: '' };

function brokenRules(file: string, code: string): string[] {
  return JSON.parse(execFileSync(process.execPath, ['tools/lint-text.mjs', file, '--without-graph'], { cwd: root, env, input: code, encoding: 'utf8' })) as string[];
}

const boundary = '@nx/enforce-module-boundaries';

beforeAll(() => {
  // The boundary rule needs Nx's project graph; one is enough for every text below.
  execFileSync(process.execPath, ['node_modules/nx/dist/bin/nx.js', 'show', 'projects', '--json'], { cwd: root, env });
});

describe('the fences between parts really stop a violation', () => {
  test.each([
    ['the domain imports an adapter', 'libs/domain/placement/src/violation.ts', "import { connectNats } from '@penstock/infra-nats';\nexport const x = connectNats;\n", boundary],
    ['a domain library imports another', 'libs/domain/placement/src/violation.ts', "import { fleetProjection } from '@penstock/domain-lifecycle';\nexport const x = fleetProjection;\n", boundary],
    ['a feature imports an adapter', 'libs/feature/router/src/violation.ts', "import { connectNats } from '@penstock/infra-nats';\nexport const x = connectNats;\n", boundary],
    ['a feature imports another feature', 'libs/feature/router/src/violation.ts', "import { startGateway } from '@penstock/feature-gateway';\nexport const x = startGateway;\n", boundary],
    ['an adapter imports another adapter', 'libs/infra/objects/src/violation.ts', "import { connectNats } from '@penstock/infra-nats';\nexport const x = connectNats;\n", boundary],
    ['a contract imports the kernel', 'libs/contract/http/src/violation.ts', "import { assert } from '@penstock/kernel';\nexport const x = assert;\n", boundary],
    ['the domain uses a package that is not zod', 'libs/domain/routing/src/violation.ts', "import { request } from 'undici';\nexport const x = request;\n", boundary],
    ['the domain uses Node', 'libs/domain/routing/src/violation.ts', "import { readFileSync } from 'node:fs';\nexport const x = readFileSync;\n", 'no-restricted-imports'],
    ['the domain uses Nest', 'libs/domain/routing/src/violation.ts', "import { Injectable } from '@nestjs/common';\nexport const x = Injectable;\n", 'no-restricted-imports'],
    ['the domain reads the clock', 'libs/domain/routing/src/violation.ts', 'export const x = Date.now();\n', 'no-restricted-properties'],
    ['the domain makes a date of now', 'libs/domain/routing/src/violation.ts', 'export const x = new Date();\n', 'no-restricted-syntax'],
    ['the domain rolls dice', 'libs/domain/routing/src/violation.ts', 'export const x = Math.random();\n', 'no-restricted-properties'],
    ['the domain sets a timer', 'libs/domain/routing/src/violation.ts', 'export const x = setTimeout;\n', 'no-restricted-globals'],
    ['somebody writes any', 'libs/infra/objects/src/violation.ts', 'export const x = (y: any): unknown => y;\n', '@typescript-eslint/no-explicit-any'],
  ])('%s', (_name, file, code, rule) => {
    expect(brokenRules(file, code)).toContain(rule);
  });

  test('what is allowed passes', () => {
    expect(brokenRules('libs/domain/routing/src/allowed.ts', "import { assert } from '@penstock/kernel';\nexport const x = assert;\n")).toEqual([]);
  });

  test('lint makes the project graph itself, so the boundary rule is never skipped', () => {
    const empty = mkdtempSync(join(tmpdir(), 'penstock-nx-'));
    const result = spawnSync(process.execPath, ['tools/lint.mjs', 'libs/contract/events/src/contexts.ts'], { cwd: root, env: { ...env, NX_WORKSPACE_DATA_DIRECTORY: empty }, encoding: 'utf8' });
    rmSync(empty, { recursive: true, force: true });
    expect(result.stdout).not.toContain('No cached ProjectGraph');
    expect(result.status).toBe(0);
  });
});
