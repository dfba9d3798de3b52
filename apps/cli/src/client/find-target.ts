import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Target } from './api-client.js';

/** What `up` leaves for the other commands, readable by its owner only. */
export const cliFile = z.object({ url: z.string(), adminKey: z.string(), apiKey: z.string().optional(), model: z.string().optional() });

/** Where `up` keeps the data of this installation. */
export function dataFolder(environment: NodeJS.ProcessEnv = process.env): string {
  return environment['PENSTOCK_HOME'] ?? join(process.cwd(), '.penstock');
}

/** Flags win over `PENSTOCK_URL` and `PENSTOCK_ADMIN_KEY`, which win over what the last `up` in this folder wrote. */
export function findTarget(flags: { readonly url?: string | undefined; readonly 'admin-key'?: string | undefined }): Target {
  const url = flags.url ?? process.env['PENSTOCK_URL'];
  const adminKey = flags['admin-key'] ?? process.env['PENSTOCK_ADMIN_KEY'];
  if (url !== undefined && adminKey !== undefined) return { url: url.replace(/\/(v1\/?)?$/, ''), adminKey };
  const path = join(dataFolder(), 'cli.json');
  try {
    const stored = cliFile.parse(JSON.parse(readFileSync(path, 'utf8')));
    return { url: url ?? stored.url, adminKey: adminKey ?? stored.adminKey };
  } catch {
    throw new Error(`No installation found: ${path} is not there. Run \`npm run up\` in this folder first, or set PENSTOCK_URL and PENSTOCK_ADMIN_KEY.`);
  }
}
