import type { ApiKeyCreatedV1 } from './api-key-created.v1.js';
import type { ApiKeyCreatedV2 } from './api-key-created.v2.js';
import { contractOf } from './event-catalogue.js';

/** Turns one published version into the next. Pure, and kept for ever. */
export interface Upcaster {
  readonly from: string;
  readonly to: string;
  upcast(data: unknown): unknown;
}

/** Every step from an old version to the next one. */
export const upcasters: readonly Upcaster[] = [
  {
    from: 'api-key.created.v1',
    to: 'api-key.created.v2',
    upcast: (data): ApiKeyCreatedV2 => ({ ...(data as ApiKeyCreatedV1), serviceAccountId: null, scopes: null, replacesKeyId: null }),
  },
];

export type ParsedEvent =
  | { readonly kind: 'parsed'; readonly type: string; readonly data: unknown }
  | { readonly kind: 'poison'; readonly reason: string };

/** More steps than this between two versions is a loop in the table. */
const UPCAST_STEPS_MAX = 100;

/**
 * Checks a stored event against the contract of its version, then lifts it to the newest version.
 * What cannot be read is `poison` with a reason, never an exception.
 */
export function parseStoredEvent(type: string, data: unknown, steps: readonly Upcaster[] = upcasters): ParsedEvent {
  let current = { type, data };
  for (let step = 0; step < UPCAST_STEPS_MAX; step += 1) {
    const upcaster = steps.find((candidate) => candidate.from === current.type);
    if (upcaster === undefined) return parseNewest(current.type, current.data);
    try {
      current = { type: upcaster.to, data: upcaster.upcast(current.data) };
    } catch (error) {
      return { kind: 'poison', reason: `upcasting ${current.type} to ${upcaster.to} failed: ${String(error)}` };
    }
  }
  return { kind: 'poison', reason: `the upcasters from ${type} do not end` };
}

function parseNewest(type: string, data: unknown): ParsedEvent {
  const contract = contractOf(type);
  if (contract === undefined) return { kind: 'poison', reason: `no contract for type ${type}` };
  const parsed = contract.schema.safeParse(data);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return { kind: 'poison', reason: `${type} does not match its contract at ${issue?.path.join('.') || 'the root'}: ${issue?.message ?? ''}` };
  }
  return { kind: 'parsed', type, data: parsed.data };
}
