import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

/**
 * Where runtimes and models are kept between starts: `PENSTOCK_CACHE`, else a folder of the system for root
 * (other users' processes, such as PostgreSQL, must be able to read it), else a folder in the user's home.
 */
export function defaultCacheDir(env: NodeJS.ProcessEnv = process.env): string {
  const chosen = env['PENSTOCK_CACHE'];
  if (chosen !== undefined && chosen !== '') return resolve(chosen);
  return process.getuid?.() === 0 ? '/var/cache/penstock' : join(homedir(), '.cache', 'penstock');
}
