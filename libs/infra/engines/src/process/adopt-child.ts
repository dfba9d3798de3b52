import type { EngineProcess, EngineRecord } from '@penstock/domain-serving';
import { isHealthy } from '../http/engine-http.js';
import { EngineChild } from './engine-child.js';

const ADOPT_HEALTH_TIMEOUT_MS = 5_000;

/** A process that is still the same but answers no more is ended: it would hold the memory of its replacement. */
export async function adoptChild(record: EngineRecord): Promise<EngineProcess | undefined> {
  const child = await EngineChild.adopt(record);
  if (child === undefined) return undefined;
  if (await isHealthy(record.kind, child.url, ADOPT_HEALTH_TIMEOUT_MS)) return child;
  await child.kill();
  return undefined;
}
