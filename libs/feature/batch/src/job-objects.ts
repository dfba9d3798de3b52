import { chunkPlan, type ChunkPlan, type LineOutcome, type ObjectStore } from '@penstock/domain-batching';
import { z } from 'zod';

const answered = z.object({ kind: z.literal('answered'), statusCode: z.int(), requestId: z.string(), bodyText: z.string() });
const partial = z.object({ outcomes: z.array(z.tuple([z.int(), answered])) });

/** The answers of a chunk, each as long as it may be, are smaller than this. */
const JSON_BYTES_MAX = 512 * 1_024 * 1_024;

/** The objects of one batch job: its plan, its checkpoints, the parts of its result. */
export class JobObjects {
  constructor(private readonly store: ObjectStore, private readonly batchId: string, private readonly workerId: string) {}

  /** Of several workers the first to plan decides. */
  async writePlan(plan: ChunkPlan): Promise<void> {
    await this.store.put(this.planKey, encode(plan), { ifAbsent: true });
  }

  /** Throws when there is none: a job that started has one. */
  async readPlan(): Promise<ChunkPlan> {
    const plan = await this.readJson(this.planKey, chunkPlan);
    if (plan === undefined) throw new Error(`The plan of ${this.batchId} is not in the object store under ${this.planKey}`);
    return plan;
  }

  /** Answers of a chunk that is not complete, so that a crash or a stop loses few of them. */
  async writePartial(chunk: number, outcomes: ReadonlyMap<number, LineOutcome>): Promise<void> {
    const kept = [...outcomes].filter(([, outcome]) => outcome.kind === 'answered');
    await this.store.put(this.partialKey(chunk), encode({ outcomes: kept }));
  }

  async readPartial(chunk: number): Promise<Map<number, LineOutcome>> {
    const found = await this.readJson(this.partialKey(chunk), partial);
    return new Map(found?.outcomes ?? []);
  }

  async removePartial(chunk: number): Promise<void> {
    await this.store.delete(this.partialKey(chunk));
  }

  /** Stores rows under a key of this worker alone; null when there are none. */
  async writeRows(kind: 'output' | 'error', chunk: number, rows: string): Promise<string | null> {
    if (rows === '') return null;
    const key = `batches/${this.batchId}/${kind}/${chunk}-${this.workerId}.jsonl`;
    await this.store.put(key, new TextEncoder().encode(rows));
    return key;
  }

  /** True for keys that {@link writeRows} of this worker gave. */
  isOwn(key: string | null): boolean {
    return key?.endsWith(`-${this.workerId}.jsonl`) === true;
  }

  resultKey(kind: 'output' | 'error'): string {
    return `batches/${this.batchId}/result/${kind}-${this.workerId}.jsonl`;
  }

  /** Removes what only a running job needs. */
  async removeWorkingSet(): Promise<void> {
    for (const kind of ['output', 'error', 'partial']) await this.removeAll(`batches/${this.batchId}/${kind}/`);
    await this.store.delete(this.planKey);
  }

  private async removeAll(prefix: string): Promise<void> {
    for (let page = await this.store.list(prefix); page.objects.length > 0; page = await this.store.list(prefix)) {
      for (const { key } of page.objects) await this.store.delete(key);
    }
  }

  private get planKey(): string {
    return `batches/${this.batchId}/plan.json`;
  }

  private partialKey(chunk: number): string {
    return `batches/${this.batchId}/partial/${chunk}.json`;
  }

  private async readJson<Value>(key: string, schema: z.ZodType<Value>): Promise<Value | undefined> {
    const reading = await this.store.get(key);
    if (reading === undefined) return undefined;
    if (reading.bytes > JSON_BYTES_MAX) throw new Error(`${key} has ${reading.bytes} bytes, more than a checkpoint can have`);
    const parts: Uint8Array[] = [];
    for await (const part of reading.body) parts.push(part);
    return schema.parse(JSON.parse(Buffer.concat(parts).toString('utf8')));
  }
}

function encode(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}
