import { access, constants } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';
import { runTool } from '../process/run-tool.js';

const VERSION_TIMEOUT_MS = 20_000;
const VERSION_PATTERN = /(\d+)\.(\d+)(?:\.(\d+))?/;

/** The first executable file of that name on the PATH. */
export async function findOnPath(name: string, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  for (const folder of (env['PATH'] ?? '').split(delimiter)) {
    if (!isAbsolute(folder)) continue;
    const candidate = join(folder, name);
    if (await access(candidate, constants.X_OK).then(() => true, () => false)) return candidate;
  }
  return undefined;
}

/** What a program calls its version, such as `2.15.1`; `unknown` when it prints none. Throws when it does not run. */
export async function executableVersion(path: string, args: readonly string[]): Promise<string> {
  const output = await runTool(path, args, { timeoutMs: VERSION_TIMEOUT_MS });
  return VERSION_PATTERN.exec(output)?.[0] ?? 'unknown';
}

/** True when `version` is `minimum` or newer, by major, minor and patch number. */
export function isAtLeast(version: string, minimum: string): boolean {
  const [have, want] = [version, minimum].map((text) => VERSION_PATTERN.exec(text)?.slice(1).map((part) => Number(part ?? 0)));
  if (have === undefined || want === undefined) return false;
  for (const [index, wanted] of want.entries()) {
    const difference = (have[index] ?? 0) - wanted;
    if (difference !== 0) return difference > 0;
  }
  return true;
}
