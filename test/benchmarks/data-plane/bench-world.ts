import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { PeerName } from './install-peers.js';
import { startPeer, type RunningTarget } from './peers.js';
import { startPenstock } from './penstock-target.js';
import { leaveMeasuredCore } from './processes.js';
import { endWithUs } from '../../platform/end-with-us.js';

export interface BenchWorld {
  readonly targets: readonly RunningTarget[];
  readonly enginePort: number;
  close(): Promise<void>;
}

/** One fake engine on two ports, Penstock before it, and the peers that this machine can run. A peer that cannot be had is named and left out. */
export async function startBenchWorld(peers: readonly PeerName[], say: (text: string) => void): Promise<BenchWorld> {
  leaveMeasuredCore();
  const folder = mkdtempSync(join(tmpdir(), 'penstock-bench-'));
  const closers: (() => Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    for (const closer of closers.reverse()) await closer();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const { child, ports } = await startEngine();
    closers.push(async () => {
      const ended = once(child, 'exit');
      if (child.kill()) await ended;
    });
    mkdirSync(join(folder, 'penstock'));
    const penstock = await startPenstock({ folder: join(folder, 'penstock'), enginePorts: ports });
    closers.push(() => penstock.close());
    const targets: RunningTarget[] = [penstock];
    for (const name of peers) {
      const peer = await startPeer(name, { folder, enginePorts: ports, say });
      closers.push(() => peer.process.stop());
      targets.push(peer);
    }
    return { targets, enginePort: ports[0] ?? 0, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function startEngine(): Promise<{ child: ChildProcess; ports: number[] }> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'fake-engine.js'), JSON.stringify({ ports: 2 })], { stdio: ['ignore', 'pipe', 'inherit'] });
  endWithUs(child);
  for await (const line of createInterface({ input: child.stdout })) return { child, ports: (JSON.parse(line) as { ports: number[] }).ports };
  throw new Error('the fake engine ended before it listened');
}
