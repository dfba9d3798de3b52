import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { defaultCacheDir } from '@penstock/infra-runtimes';

const execute = promisify(execFile);
const INSTALL_TIMEOUT_MS = 300_000;

/** Clients that users build on, pinned. They are installed into the machine's cache: the platform itself needs none of them. */
const PACKAGES = { ai: '7.0.173', '@ai-sdk/openai-compatible': '3.0.92', '@langchain/openai': '1.6.0', '@openai/agents': '0.20.0', zod: '4.6.7' } as const;

/** Imports a package out of the cache, where it is installed first if it has to be. */
export type ImportClient = (name: keyof typeof PACKAGES) => Promise<Readonly<Record<string, unknown>>>;

export async function installNodeClients(say: (text: string) => void): Promise<ImportClient> {
  const key = Object.entries(PACKAGES).map(([name, version]) => `${name.replace(/\W+/g, '-')}-${version}`).join('_');
  const folder = join(defaultCacheDir(process.env), 'conformance', key.replace(/^-/, ''));
  if (!existsSync(join(folder, 'installed'))) {
    say('installing the Vercel AI SDK, LangChain and OpenAI Agents, once for this machine');
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module', dependencies: PACKAGES }));
    // npm beside the Node that runs this; else the one on the PATH.
    await execute('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'], { cwd: folder, timeout: INSTALL_TIMEOUT_MS });
    await mkdir(join(folder, 'installed'));
  }
  const resolver = createRequire(join(folder, 'package.json'));
  return async (name) => {
    const manifest = join(folder, 'node_modules', name, 'package.json');
    const entry = importEntryOf(resolver(manifest) as { readonly exports?: unknown; readonly module?: string; readonly main?: string });
    return (await import(pathToFileURL(join(dirname(manifest), entry)).href)) as Readonly<Record<string, unknown>>;
  };
}

/** The file that `import` takes from a package. */
function importEntryOf(manifest: { readonly exports?: unknown; readonly module?: string; readonly main?: string }): string {
  const walk = (value: unknown): string | undefined => {
    if (typeof value === 'string') return value;
    if (typeof value !== 'object' || value === null) return undefined;
    const conditions = value as Readonly<Record<string, unknown>>;
    for (const condition of ['.', 'node', 'import', 'default']) {
      const found = condition in conditions ? walk(conditions[condition]) : undefined;
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return walk(manifest.exports) ?? manifest.module ?? manifest.main ?? 'index.js';
}
