import { setTimeout as delay } from 'node:timers/promises';
import { commandLineOf, isSameProcess } from '../process/process-identity.js';
import type { ChildRecord, InstanceState } from './instance-state.js';

const GRACE_MS = 10_000;
const KILL_WAIT_MS = 5_000;
const POLL_MS = 50;

/** Ends what an earlier run of this instance left behind. Returns what was still running. */
export async function reapChildren(state: InstanceState): Promise<readonly ChildRecord[]> {
  const reaped = await Promise.all(state.children().map(async (child) => {
    const wasRunning = await reap(child);
    await state.forgetChild(child.pid);
    return wasRunning ? child : undefined;
  }));
  return reaped.filter((child) => child !== undefined);
}

async function reap(child: ChildRecord): Promise<boolean> {
  if (!(await isStillThatProcess(child))) return false;
  signalQuietly(child.pid, child.stopSignal);
  if (await hasEnded(child, GRACE_MS)) return true;
  signalQuietly(-child.pid, 'SIGKILL');
  if (await hasEnded(child, KILL_WAIT_MS)) return true;
  throw new Error(`Process ${child.pid} (${child.name}), left by an earlier run, does not end; end it by hand, then start again.`);
}

/** Start time and command line must both agree: the number alone may belong to a stranger by now. */
async function isStillThatProcess(child: ChildRecord): Promise<boolean> {
  return (await isSameProcess(child.pid, child.identity)) && (await commandLineOf(child.pid)) === child.commandLine;
}

async function hasEnded(child: ChildRecord, withinMs: number): Promise<boolean> {
  for (let waitedMs = 0; waitedMs < withinMs; waitedMs += POLL_MS) {
    if (!(await isSameProcess(child.pid, child.identity))) return true;
    await delay(POLL_MS);
  }
  return false;
}

function signalQuietly(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended meanwhile.
  }
}
