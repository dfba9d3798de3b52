import type { ObjectStore } from '@penstock/domain-batching';
import type { ResponseInputItem } from '@penstock/contract-http';
import type { ResponseBody } from '@penstock/domain-serving';
import type { Clock } from '@penstock/kernel';
import { z } from 'zod';

/** How long a response is kept, as OpenAI keeps them. */
export const RESPONSE_TTL_MS = 30 * 86_400_000;
/** Objects that one sweep looks at; the next one goes on from there. */
const SWEEP_OBJECTS_MAX = 1_000;
const PREFIX = 'responses/';

const storedResponse = z.object({ expiresAtMs: z.int(), input: z.array(z.looseObject({})), response: z.looseObject({ id: z.string() }) });

export interface StoredResponse {
  /** Everything that was asked, that of responses it goes on from included. */
  readonly input: readonly ResponseInputItem[];
  readonly response: ResponseBody;
}

/** Responses that callers asked to keep, in the object store under their organisation. They go when they are deleted or too old. */
export class ResponseStore {
  private sweepCursor: string | undefined;

  constructor(private readonly ports: { readonly objects: ObjectStore; readonly clock: Clock }) {}

  async put(organisationId: string, { input, response }: StoredResponse): Promise<void> {
    const body = JSON.stringify({ expiresAtMs: this.ports.clock.now() + RESPONSE_TTL_MS, input, response });
    await this.ports.objects.put(keyOf(organisationId, response.id), Buffer.from(body));
  }

  /** Undefined when there is none, or none of this organisation. */
  async get(organisationId: string, responseId: string): Promise<StoredResponse | undefined> {
    const reading = await this.ports.objects.get(keyOf(organisationId, responseId));
    if (reading === undefined) return undefined;
    const pieces: Uint8Array[] = [];
    for await (const piece of reading.body) pieces.push(piece);
    const stored = storedResponse.parse(JSON.parse(Buffer.concat(pieces).toString('utf8')));
    if (stored.expiresAtMs <= this.ports.clock.now()) return undefined;
    return { input: stored.input as unknown as readonly ResponseInputItem[], response: stored.response as unknown as ResponseBody };
  }

  async delete(organisationId: string, responseId: string): Promise<void> {
    await this.ports.objects.delete(keyOf(organisationId, responseId));
  }

  /** Removes some of what is too old. */
  async sweep(): Promise<void> {
    const page = await this.ports.objects.list(PREFIX, { limit: SWEEP_OBJECTS_MAX, cursor: this.sweepCursor });
    this.sweepCursor = page.next;
    const dueMs = this.ports.clock.now() - RESPONSE_TTL_MS;
    for (const { key, modifiedMs } of page.objects) if (modifiedMs < dueMs) await this.ports.objects.delete(key);
  }
}

function keyOf(organisationId: string, responseId: string): string {
  return `${PREFIX}${organisationId}/${responseId}`;
}
