import { mkdir, open, readFile, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { engineKind } from '@penstock/contract-events';
import type { AgentMemory, EngineRecords } from '@penstock/domain-serving';
import { z } from 'zod';

const agentMemory = z.object({
  nodeId: z.string(),
  engines: z.array(z.object({
    replicaId: z.string(), kind: engineKind, url: z.string(), servedModel: z.string(),
    pid: z.int().positive().nullable(), processIdentity: z.string().nullable(), logFile: z.string(),
  })),
});

/** The agent's memory in one JSON file, replaced as a whole. */
export class FileEngineRecords implements EngineRecords {
  private writing: Promise<void> = Promise.resolve();

  constructor(private readonly path: string) {}

  async load(): Promise<AgentMemory | undefined> {
    const text = await readFile(this.path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined;
      throw error;
    });
    if (text === undefined) return undefined;
    const parsed = agentMemory.safeParse(parseJson(text));
    if (parsed.success) return parsed.data;
    throw new Error(`${this.path} is damaged: ${parsed.error.issues[0]?.message ?? ''}. Stop the engines of this node by hand, remove the file and start the agent again.`);
  }

  save(memory: AgentMemory): Promise<void> {
    const next = this.writing.catch(() => undefined).then(() => this.write(JSON.stringify(memory, undefined, 2)));
    this.writing = next;
    return next;
  }

  private async write(text: string): Promise<void> {
    await mkdir(dirname(this.path), { recursive: true });
    const fresh = join(dirname(this.path), `.agent-memory-${process.pid}.json`);
    const file = await open(fresh, 'w', 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(fresh, this.path);
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
