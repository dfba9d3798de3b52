import { readdir, stat } from 'node:fs/promises';
import { basename, join, resolve, sep } from 'node:path';
import type { ArtifactSource } from '@penstock/contract-events';
import { chooseModelFiles } from './choose-model-files.js';

const FILES_MAX = 10_000;

export interface LocalFile {
  /** Path inside the model version. */
  readonly path: string;
  readonly absolutePath: string;
}

/** The files of a folder (or the one file) on this node; `wanted` names them when they are known. They are used where they lie. */
export async function directoryFiles(source: Extract<ArtifactSource, { kind: 'directory' }>, wanted: readonly string[]): Promise<readonly LocalFile[]> {
  const root = resolve(source.path);
  const found = await stat(root).catch(() => undefined);
  if (found === undefined) throw new Error(`${root} does not exist on this node`);
  if (found.isFile()) return [{ path: basename(root), absolutePath: root }];
  const names = wanted.length > 0 ? wanted : chooseModelFiles(await filesOf(root));
  return names.map((path) => {
    const absolutePath = resolve(join(root, path));
    if (!absolutePath.startsWith(root + sep)) throw new Error(`${path} lies outside of ${root}`);
    return { path, absolutePath };
  });
}

async function filesOf(root: string): Promise<readonly string[]> {
  const entries = await readdir(root, { withFileTypes: true });
  if (entries.length > FILES_MAX) throw new Error(`${root} holds more than ${FILES_MAX} entries: name the model's own folder`);
  return entries.filter((entry) => entry.isFile() || entry.isSymbolicLink()).map((entry) => entry.name);
}
