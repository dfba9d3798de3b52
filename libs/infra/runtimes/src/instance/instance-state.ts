import { join } from 'node:path';
import { z } from 'zod';
import { commandLineOf, identityOf } from '../process/process-identity.js';
import { readJsonFile, writeJsonFile } from './json-file.js';

/** A process that this instance started, described well enough to recognise it after a crash. */
export const childRecord = z.object({
  name: z.string(),
  pid: z.int().positive(),
  identity: z.string(),
  commandLine: z.string(),
  stopSignal: z.enum(['SIGTERM', 'SIGINT', 'SIGKILL']),
});
export type ChildRecord = z.infer<typeof childRecord>;

const instanceState = z.object({
  /** The port of each server, kept so that addresses stay the same over restarts. */
  ports: z.record(z.string(), z.int().min(1).max(65_535)),
  children: z.array(childRecord).max(1_000),
});
type StateData = z.infer<typeof instanceState>;

/** The state file of an instance. Changes are written one after the other. */
export class InstanceState {
  private writing: Promise<void> = Promise.resolve();

  private constructor(private readonly path: string, private readonly data: StateData) {}

  static async load(dataDir: string): Promise<InstanceState> {
    const path = join(dataDir, 'state.json');
    return new InstanceState(path, (await readJsonFile(path, instanceState)) ?? { ports: {}, children: [] });
  }

  children(): readonly ChildRecord[] {
    return [...this.data.children];
  }

  port(name: string): number | undefined {
    return this.data.ports[name];
  }

  async setPort(name: string, port: number): Promise<void> {
    this.data.ports[name] = port;
    await this.save();
  }

  /** Remembers a process until {@link forgetChild}; one that is left over is ended at the next start. */
  async recordChild(name: string, pid: number, stopSignal: ChildRecord['stopSignal']): Promise<void> {
    const identity = await identityOf(pid);
    if (identity === undefined) return;
    this.data.children.push({ name, pid, identity, commandLine: (await commandLineOf(pid)) ?? '', stopSignal });
    await this.save();
  }

  async forgetChild(pid: number): Promise<void> {
    this.data.children = this.data.children.filter((child) => child.pid !== pid);
    await this.save();
  }

  private save(): Promise<void> {
    this.writing = this.writing.then(() => writeJsonFile(this.path, this.data));
    return this.writing;
  }
}
