// Transpiles every workspace project from `src` to `dist` with SWC, file by file, skipping what is newer than its source.
// Types are checked apart (`npm run typecheck`), so that starting the platform never waits for the checker.
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { transform } from '@swc/core';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const groups = ['apps', 'libs/contract', 'libs/domain', 'libs/feature', 'libs/infra', 'libs/testing'];
const swcOptions = JSON.parse(await readFile(join(root, '.swcrc.json'), 'utf8'));
delete swcOptions.$schema;

async function projectFolders() {
  const found = [];
  for (const group of groups) {
    const entries = await readdir(join(root, group), { withFileTypes: true }).catch(() => []);
    for (const entry of entries) if (entry.isDirectory()) found.push(join(group, entry.name));
  }
  return [...found, 'test'];
}

async function* filesUnder(folder) {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isDirectory() && entry.name === 'dist' && folder.endsWith(`${sep}test`)) continue;
    if (entry.isDirectory()) yield* filesUnder(path);
    else yield path;
  }
}

const modifiedMs = async (path) => (await stat(path).catch(() => undefined))?.mtimeMs ?? 0;

async function buildFile(source, target) {
  if ((await modifiedMs(target)) > (await modifiedMs(source))) return false;
  await mkdir(dirname(target), { recursive: true });
  const text = await readFile(source, 'utf8');
  const { code, map } = await transform(text, { ...swcOptions, swcrc: false, filename: source, sourceFileName: relative(dirname(target), source) });
  await writeFile(`${target}.map`, map ?? '');
  await writeFile(target, `${code}\n//# sourceMappingURL=${target.split('/').pop()}.map\n`);
  return true;
}

async function buildProject(folder) {
  // The harness of benches, drills and conformance has no project of its own: its sources stand in `test` itself.
  const sourceRoot = folder === 'test' ? join(root, 'test') : join(root, folder, 'src');
  const distRoot = join(root, folder, 'dist');
  const wanted = new Set();
  let built = 0;
  for await (const source of filesUnder(sourceRoot)) {
    if (source.endsWith('.test.ts') || source.endsWith('.d.ts')) continue;
    const inside = relative(sourceRoot, source);
    if (source.endsWith('.ts')) {
      const target = join(distRoot, inside.replace(/\.ts$/, '.js'));
      wanted.add(target).add(`${target}.map`);
      if (await buildFile(source, target)) built += 1;
      continue;
    }
    // Data files beside the sources (SQL, JSON, Python launchers) are copied as they are.
    const target = join(distRoot, inside);
    wanted.add(target);
    if ((await modifiedMs(target)) <= (await modifiedMs(source))) {
      await mkdir(dirname(target), { recursive: true });
      await writeFile(target, await readFile(source));
      built += 1;
    }
  }
  for await (const stale of filesUnder(distRoot)) if (!wanted.has(stale)) await rm(stale);
  return built;
}

const asked = process.argv.slice(2);
const folders = asked.length > 0 ? asked : await projectFolders();
const startedMs = performance.now();
const counts = await Promise.all(folders.map(buildProject));
const built = counts.reduce((sum, count) => sum + count, 0);
if (built > 0) process.stderr.write(`built ${built} files in ${Math.round(performance.now() - startedMs)} ms\n`);
