import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { canonicalJson, type JsonObject } from './json-schema.js';

/** The repository's root, from the sources as from the built harness. */
export function repositoryRoot(folder: string): string {
  return folder.slice(0, folder.lastIndexOf('/test/'));
}

/** The documents that are checked in: what the code says now, and what was published last. */
export const documents = { asyncapi: 'asyncapi.json', openapi: 'openapi.json' } as const;

export async function readDocument(root: string, set: 'current' | 'published', name: string): Promise<JsonObject> {
  return JSON.parse(await readFile(join(root, folderOf(set), name), 'utf8')) as JsonObject;
}

export async function writeDocument(root: string, set: 'current' | 'published', name: string, document: JsonObject): Promise<void> {
  await writeFile(join(root, folderOf(set), name), `${canonicalJson(document)}\n`);
}

function folderOf(set: 'current' | 'published'): string {
  return set === 'current' ? 'docs/contracts' : 'docs/contracts/published';
}
