import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const MAIN = join(import.meta.dirname, '../../apps/cli/dist/main.js');

/** What the command line prints for these words against a platform, as an operator. Rejects where it ends with an error. */
export async function runCli(platform: { readonly url: string; readonly adminKey: string }, ...words: readonly string[]): Promise<string> {
  const { stdout } = await run(process.execPath, [MAIN, ...words], { env: { ...process.env, PENSTOCK_URL: platform.url, PENSTOCK_ADMIN_KEY: platform.adminKey } });
  return stdout;
}
