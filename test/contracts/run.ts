import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Run } from '../harness.js';
import { asyncApiDocument } from './asyncapi.js';
import { breakingEventChanges, breakingRouteChanges } from './breaking-changes.js';
import { documents, readDocument, repositoryRoot, writeDocument } from './files.js';
import { openApiDocument } from '@penstock/contract-http';

/** `npm run contracts` writes the documents again; `-- --publish` also makes them the baseline, unless that would break somebody. */
export const run: Run = async ({ args, say }) => {
  const root = repositoryRoot(import.meta.dirname);
  await mkdir(join(root, 'docs/contracts/published'), { recursive: true });
  const asyncapi = asyncApiDocument();
  const openapi = openApiDocument();
  await writeDocument(root, 'current', documents.asyncapi, asyncapi);
  await writeDocument(root, 'current', documents.openapi, openapi);
  const publishedEvents = await readDocument(root, 'published', documents.asyncapi).catch(() => undefined);
  const publishedRoutes = await readDocument(root, 'published', documents.openapi).catch(() => undefined);
  const breaking = [
    ...(publishedEvents === undefined ? [] : breakingEventChanges(publishedEvents, asyncapi)),
    ...(publishedRoutes === undefined ? [] : breakingRouteChanges(publishedRoutes, openapi)),
  ];
  for (const change of breaking) say(`breaking: ${change}`);
  if (args.includes('--publish') && breaking.length === 0) {
    await writeDocument(root, 'published', documents.asyncapi, asyncapi);
    await writeDocument(root, 'published', documents.openapi, openapi);
  }
  return { figures: { breaking: breaking.length }, pass: breaking.length === 0 };
};
