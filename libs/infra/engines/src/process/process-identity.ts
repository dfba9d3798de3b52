import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);
const PS_TIMEOUT_MS = 5_000;
/** Fields of /proc/<pid>/stat counted after the closing bracket of the command name. */
const STATE_FIELD = 0;
const START_TIME_FIELD = 19;

/**
 * Names a process beyond its number: boot and start time, so that a later process with the same number has another name.
 * Undefined when there is no such process, or only its unreaped remains.
 */
export async function identityOf(pid: number): Promise<string | undefined> {
  return process.platform === 'linux' ? identityFromProc(pid) : identityFromPs(pid);
}

async function identityFromProc(pid: number): Promise<string | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  if (stat === undefined) return undefined;
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (fields[STATE_FIELD] === 'Z' || fields[STATE_FIELD] === 'X') return undefined;
  const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => '');
  return `${boot.trim()}:${fields[START_TIME_FIELD] ?? ''}`;
}

async function identityFromPs(pid: number): Promise<string | undefined> {
  const line = await run('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { timeout: PS_TIMEOUT_MS }).then(({ stdout }) => stdout.trim(), () => '');
  if (line === '' || line.startsWith('Z')) return undefined;
  return line.slice(line.indexOf(' ') + 1).trim();
}
