import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { repositoryRoot } from './contracts/files.js';

const root = repositoryRoot(join(import.meta.dirname, 'x'));
const tracked = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: root, encoding: 'utf8' }).split('\n').filter((file) => file.length > 0 && existsSync(join(root, file)));
const read = (file: string): string => readFileSync(join(root, file), 'utf8');
const sources = tracked.filter((file) => /^(apps|libs|test|tools)\/.*\.(ts|mjs|py|sql)$/.test(file));
const typescript = sources.filter((file) => file.endsWith('.ts'));
const projects = tracked.filter((file) => /^(apps\/[^/]+|libs\/[^/]+\/[^/]+)\/package\.json$/.test(file)).map((file) => dirname(file));

const FILE_LINES_MAX = 400;
const BLOB_BYTES_MAX = 2_000_000;

/** Markers of unfinished work and drawers of things; spelt in parts so that this list does not find itself. */
const BANNED = ['TO' + 'DO', 'FIX' + 'ME', 'X' + 'XX', 'not ' + 'implemented', '@ts-' + 'ignore', '@ts-' + 'nocheck', 'as ' + 'any'];
const DRAWERS = /(^|\/)(utils?|helpers?|common|misc|managers?)(\.ts|\/)/;

describe('what lint cannot see', () => {
  test(`no source file is longer than ${FILE_LINES_MAX} lines`, () => {
    expect(sources.filter((file) => read(file).split('\n').length > FILE_LINES_MAX + 1)).toEqual([]);
  });

  test('no unfinished markers or silenced checks', () => {
    const found = sources.flatMap((file) => BANNED.filter((word) => new RegExp(`(?<!\\w)${word}(?!\\w)`).test(read(file))).map((word) => `${file}: ${word}`));
    expect(found).toEqual([]);
  });

  test('no skipped or focused tests', () => {
    const pattern = new RegExp(String.raw`\b(?:test|it|describe)\.(?:` + ['skip', 'only', 'to' + 'do'].join('|') + String.raw`)\b|\bx(?:it|describe|test)\(`);
    expect(typescript.filter((file) => pattern.test(read(file)))).toEqual([]);
  });

  test('files are kebab-case and no file or folder is a drawer', () => {
    expect(sources.filter((file) => DRAWERS.test(file))).toEqual([]);
    const odd = typescript.filter((file) => !file.split('/').pop()!.replace(/\.ts$/, '').split('.').every((part) => /^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(part)));
    expect(odd).toEqual([]);
  });

  test('index files only re-export', () => {
    const offenders = typescript
      .filter((file) => /^libs\/[^/]+\/[^/]+\/src\/index\.ts$/.test(file))
      .filter((file) => read(file).split('\n').some((line) => line.trim().length > 0 && !/^(export (type )?(\*|\{[^}]*\}) from '\.\/[^']+';|export \{\};|\/\/.*|export (type )?\{|\s+[\w, ]+,?|\} from '\.\/[^']+';)$/.test(line)));
    expect(offenders).toEqual([]);
    expect(typescript.filter((file) => file.endsWith('/index.ts') && !/\/src\/index\.ts$/.test(file))).toEqual([]);
  });

  test('every project has a README line in the architecture document, tags and its three targets', () => {
    const architecture = read('docs/ARCHITECTURE.md');
    for (const project of projects) {
      const manifest = JSON.parse(read(`${project}/package.json`)) as { nx?: { tags?: string[]; targets?: object }; dependencies?: object };
      expect({ project, tags: manifest.nx?.tags?.map((tag) => tag.split(':')[0]) }).toEqual({ project, tags: ['type', 'scope'] });
      expect({ project, targets: Object.keys(manifest.nx?.targets ?? {}).sort() }).toEqual({ project, targets: ['build', 'lint', 'test'] });
      expect({ project, named: architecture.includes(project) }).toEqual({ project, named: true });
      // One version of each package for the whole workspace: dependencies stand in the root manifest only.
      expect({ project, dependencies: manifest.dependencies }).toEqual({ project, dependencies: undefined });
    }
  });

  test('versions are pinned exactly', () => {
    const manifest = JSON.parse(read('package.json')) as { dependencies: Record<string, string>; devDependencies: Record<string, string> };
    const loose = Object.entries({ ...manifest.dependencies, ...manifest.devDependencies }).filter(([, version]) => !/^(npm:[^@]+@)?\d+\.\d+\.\d+([-.][\w.]+)?$/.test(version));
    expect(loose).toEqual([]);
  });

  test('no big blobs', () => {
    expect(tracked.filter((file) => statSync(join(root, file)).size > BLOB_BYTES_MAX)).toEqual([]);
  });

  test('no absolute path of a build machine in the tree', () => {
    const pattern = new RegExp(['/wo' + 'rk/', '/ro' + 'ot/', '/tmp/' + 'bash_jobs'].join('|'));
    expect(tracked.filter((file) => !file.endsWith('package-lock.json') && /\.(ts|mjs|json|md|sql|py|yaml|yml)$/.test(file)).filter((file) => pattern.test(read(file)))).toEqual([]);
  });

  test('links in the documents lead somewhere', () => {
    const broken = tracked.filter((file) => file.endsWith('.md')).flatMap((file) =>
      [...read(file).matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)(?:#[^)]*)?\)/g)]
        .map((match) => match[1]!)
        .filter((target) => !existsSync(join(root, dirname(file), target)))
        .map((target) => `${file} -> ${target}`),
    );
    expect(broken).toEqual([]);
  });

  test('every source file of a library is reached from its index or a main', () => {
    const dead = typescript
      .filter((file) => /^(apps|libs)\/.*\/src\//.test(file) && !/(\.test|-suite)\.ts$/.test(file) && !/\/(index|main)\.ts$/.test(file))
      .filter((file) => {
        const used = file.includes('/src/testing/');
        const name = file.split('/').pop()!.replace(/\.ts$/, '');
        const project = /^(apps\/[^/]+|libs\/[^/]+\/[^/]+)\//.exec(file)![1]!;
        // What tests share counts as reached by a test; a command line names its table in the manifest.
        if (read(`${project}/package.json`).includes(`/${name}.js`)) return false;
        const others = typescript.filter((other) => other.startsWith(`${project}/`) && other !== file && (used || !other.endsWith('.test.ts')));
        return !others.some((other) => new RegExp(`['/]${name.replaceAll('.', '\\.')}(\\.js)?['"]`).test(read(other)));
      });
    expect(dead).toEqual([]);
  });
});
