import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { executableVersion, findOnPath, isAtLeast } from '../install/executable-version.js';
import { INSTALL_TIMEOUT_MS, type InstallContext, type Installed } from '../install/install-context.js';
import type { RuntimeSource } from '../manifest.js';
import { runTool } from '../process/run-tool.js';

type DebianSource = Extract<RuntimeSource, { kind: 'debian' }>;

const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';

/** Downloads a package of a newer Debian release through an apt state of its own; the machine's apt is not touched. */
export async function installDebian(source: DebianSource, context: InstallContext): Promise<Installed> {
  if ((await findOnPath('apt-get', context.env)) === undefined) throw new Error('this machine has no apt-get');
  const failures: string[] = [];
  for (const suite of source.suites) {
    try {
      return await installFromSuite(source, suite, context);
    } catch (error) {
      failures.push(`${suite}: ${(error as Error).message}`);
    }
  }
  throw new Error(failures.join('; '));
}

async function installFromSuite(source: DebianSource, suite: string, context: InstallContext): Promise<Installed> {
  const state = join(context.scratch, `apt-${suite}`);
  for (const folder of ['lists/partial', 'cache/archives/partial', 'deb', 'empty']) await mkdir(join(state, folder), { recursive: true });
  await writeFile(join(state, 'sources.list'), `deb [signed-by=${KEYRING}] http://deb.debian.org/debian ${suite} main\n`);
  await writeFile(join(state, 'status'), '');
  const settings = [
    `Dir::Etc::SourceList=${state}/sources.list`, `Dir::Etc::SourceParts=${state}/empty`, `Dir::Etc::PreferencesParts=${state}/empty`,
    `Dir::State::Lists=${state}/lists`, `Dir::State::status=${state}/status`, `Dir::Cache=${state}/cache`, 'APT::Sandbox::User=root',
    'APT::Get::List-Cleanup=false', 'Acquire::Languages=none',
  ].flatMap((setting) => ['-o', setting]);
  const options = { timeoutMs: INSTALL_TIMEOUT_MS, cwd: join(state, 'deb'), env: context.env };
  context.report('downloading', 0, undefined);
  await runTool('apt-get', [...settings, '-qq', 'update'], options);
  await runTool('apt-get', [...settings, '-qq', 'download', source.package], options);
  const file = (await readdir(join(state, 'deb'))).find((name) => name.endsWith('.deb'));
  if (file === undefined) throw new Error(`apt-get downloaded no ${source.package}`);
  context.report('unpacking', 0, undefined);
  await runTool('dpkg-deb', ['-x', join(state, 'deb', file), context.folder], options);
  const version = await executableVersion(join(context.folder, source.entry), ['--version']);
  if (!isAtLeast(version, source.minimumVersion)) throw new Error(`it has ${source.package} ${version}, ${source.minimumVersion} or newer is needed`);
  return { entry: source.entry, version };
}
