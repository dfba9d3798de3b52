import { EngineStartError, type EngineProcess, type EngineRecord, type EngineStartSpec } from '@penstock/domain-serving';
import { z } from 'zod';
import { AttachedEngine } from '../attached/attach-engine.js';
import { engineRequest } from '../http/engine-http.js';

const ATTACH_TIMEOUT_MS = 10_000;
const modelIndex = z.array(z.looseObject({ name: z.string(), state: z.string().optional() }));

/**
 * Finds a Triton, or another server of the protocol, at its URL, and the model to serve: the one that has the endpoint's name, else the only one
 * that is ready. Throws {@link EngineStartError}.
 */
export async function attachTriton(spec: EngineStartSpec, attachedUrl: string): Promise<EngineProcess> {
  const url = attachedUrl.replace(/\/+$/, '').replace(/\/v2$/, '');
  const alive = await engineRequest(`${url}/v2/health/live`, ATTACH_TIMEOUT_MS).catch((error: Error) => error);
  if (alive instanceof Error || alive.status !== 200) {
    const reason = alive instanceof Error ? alive.message : `GET /v2/health/live has status ${alive.status}`;
    throw new EngineStartError('unreachable', `No server of the Open Inference Protocol answers at ${url} (${reason}); start it there, or attach it by its right URL.`);
  }
  const servedModel = (await isServed(url, spec.modelName)) ? spec.modelName : await onlyModelOf(url, spec.modelName);
  return new AttachedEngine({ kind: 'triton', replicaId: spec.replicaId, url, servedModel, pid: null, processIdentity: null, logFile: spec.logFile });
}

export async function adoptAttachedTriton(record: EngineRecord): Promise<EngineProcess | undefined> {
  return (await isServed(record.url, record.servedModel).catch(() => false)) ? new AttachedEngine(record) : undefined;
}

async function isServed(url: string, name: string): Promise<boolean> {
  return (await engineRequest(`${url}/v2/models/${encodeURIComponent(name)}/ready`, ATTACH_TIMEOUT_MS)).status === 200;
}

async function onlyModelOf(url: string, wanted: string): Promise<string> {
  const reply = await engineRequest(`${url}/v2/repository/index`, ATTACH_TIMEOUT_MS, {});
  const models = reply.status === 200 ? modelIndex.safeParse(parsed(reply.text)).data ?? [] : [];
  const ready = models.filter(({ state }) => state === undefined || state === 'READY').map(({ name }) => name);
  const [only] = ready;
  if (only !== undefined && new Set(ready).size === 1) return only;
  throw new EngineStartError('unreachable', `The server at ${url} has no model ${wanted} that is ready, and ${ready.length} others (${ready.slice(0, 5).join(', ') || 'none'}). Call the endpoint as the server calls its model.`);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
