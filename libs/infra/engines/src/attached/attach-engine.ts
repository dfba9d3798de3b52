import type { EngineKind } from '@penstock/contract-events';
import { EngineStartError, type EngineProcess, type EngineRecord, type EngineStartSpec } from '@penstock/domain-serving';
import { z } from 'zod';
import { engineRequest } from '../http/engine-http.js';

const ATTACH_TIMEOUT_MS = 10_000;
const modelList = z.looseObject({ data: z.array(z.looseObject({ id: z.string() })).min(1) });

/** An engine that somebody else runs: it is used and never stopped. */
export class AttachedEngine implements EngineProcess {
  readonly pid = null;
  readonly exited = new Promise<never>(() => undefined);

  constructor(readonly record: EngineRecord) {}

  get url(): string {
    return this.record.url;
  }

  get servedModel(): string {
    return this.record.servedModel;
  }

  async stop(): Promise<void> {
    // It is not ours to stop.
  }

  async kill(): Promise<void> {
    // It is not ours to end.
  }
}

/**
 * Finds an engine at its URL and asks for the name that it knows its model by: the name of the spec when it serves that, else its first.
 * Throws {@link EngineStartError}.
 */
export async function attachEngine(kind: EngineKind, spec: EngineStartSpec, attachedUrl: string): Promise<EngineProcess> {
  const url = attachedUrl.replace(/\/+$/, '').replace(/\/v1$/, '');
  const ids = await servedModels(url);
  const servedModel = ids.includes(spec.modelName) ? spec.modelName : (ids[0] ?? spec.modelName);
  return new AttachedEngine({ kind, replicaId: spec.replicaId, url, servedModel, pid: null, processIdentity: null, logFile: spec.logFile });
}

export async function adoptAttached(record: EngineRecord): Promise<EngineProcess | undefined> {
  const ids: readonly string[] = await servedModels(record.url).catch(() => []);
  return ids.includes(record.servedModel) ? new AttachedEngine(record) : undefined;
}

async function servedModels(url: string): Promise<readonly string[]> {
  const unreachable = (reason: string, cause?: unknown): EngineStartError =>
    new EngineStartError('unreachable', `No OpenAI-compatible engine answers at ${url} (${reason}); start it there, or attach it by its right URL.`, { cause });
  const reply = await engineRequest(`${url}/v1/models`, ATTACH_TIMEOUT_MS).catch((error: Error) => {
    throw unreachable(error.message, error);
  });
  if (reply.status !== 200) throw unreachable(`GET /v1/models has status ${reply.status}`);
  try {
    return modelList.parse(JSON.parse(reply.text)).data.map((model) => model.id);
  } catch (error) {
    throw unreachable('GET /v1/models is not a list of models', error);
  }
}
