import type { ApiKeyCreatedV2, apiKeyCreatedV2, apiKeyRevokedV1, apiKeyRotatedV1, EventOf } from '@penstock/contract-events';
import { accept, refuse, type Decider } from '@penstock/kernel';

export type ApiKeyEvent = EventOf<typeof apiKeyCreatedV2> | EventOf<typeof apiKeyRotatedV1> | EventOf<typeof apiKeyRevokedV1>;
export type ApiKeyCommand =
  | { readonly kind: 'create'; readonly key: ApiKeyCreatedV2; readonly nowMs: number }
  /** Another key takes its place; this one works for `overlapMs` longer. */
  | { readonly kind: 'rotate'; readonly replacedByKeyId: string; readonly nowMs: number; readonly overlapMs: number }
  | { readonly kind: 'revoke'; readonly reason: string };
export type ApiKeyState = { readonly key: ApiKeyCreatedV2; readonly replacedByKeyId: string | null; readonly revoked: boolean } | null;

/** An old key may work beside its successor for at most 30 days: longer is no rotation. */
export const ROTATION_OVERLAP_MS_MAX = 30 * 86_400_000;

/** A key is created once, perhaps replaced once, and revoked for good; revoking again changes nothing. */
export const apiKeyDecider: Decider<ApiKeyState, ApiKeyCommand, ApiKeyEvent> = {
  initialState: null,
  decide(command, state) {
    if (command.kind === 'create') {
      const { key, nowMs } = command;
      if (state !== null) return refuse({ code: 'already_exists', message: `Key ${key.keyId} exists already; create another one.` });
      if (key.expiresAt !== null && Date.parse(key.expiresAt) <= nowMs) {
        return refuse({ code: 'invalid_value', message: `'expires_at' lies in the past; give a time after now, or null for a key that does not expire.`, param: 'expires_at' });
      }
      return accept({ type: 'api-key.created.v2', data: key });
    }
    if (state === null) return refuse({ code: 'not_found', message: 'No such key; list the keys to see their ids.' });
    if (command.kind === 'rotate') return rotate(command, state);
    if (state.revoked) return accept();
    return accept({ type: 'api-key.revoked.v1', data: { keyId: state.key.keyId, reason: command.reason } });
  },
  evolve(state, event) {
    if (event.type === 'api-key.created.v2') return { key: event.data, replacedByKeyId: null, revoked: false };
    if (state === null) return null;
    return event.type === 'api-key.rotated.v1' ? { ...state, replacedByKeyId: event.data.replacedByKeyId } : { ...state, revoked: true };
  },
};

function rotate({ replacedByKeyId, nowMs, overlapMs }: Extract<ApiKeyCommand, { kind: 'rotate' }>, { key, revoked, replacedByKeyId: earlier }: NonNullable<ApiKeyState>) {
  const { keyId, expiresAt } = key;
  if (revoked || (expiresAt !== null && Date.parse(expiresAt) <= nowMs)) return refuse<ApiKeyEvent>({ code: 'invalid_value', message: `Key ${keyId} no longer works, so there is nothing to rotate. Create a new key.`, param: 'key_id' });
  if (earlier === replacedByKeyId) return accept<ApiKeyEvent>();
  if (earlier !== null) return refuse<ApiKeyEvent>({ code: 'already_exists', message: `Key ${keyId} was rotated already; its successor is ${earlier}. Rotate that one.`, param: 'key_id' });
  if (overlapMs < 0 || overlapMs > ROTATION_OVERLAP_MS_MAX) return refuse<ApiKeyEvent>({ code: 'invalid_value', message: `The overlap must be between 0 and ${ROTATION_OVERLAP_MS_MAX / 1_000} seconds.`, param: 'overlap_seconds' });
  return accept<ApiKeyEvent>({ type: 'api-key.rotated.v1', data: { keyId, replacedByKeyId, worksUntil: new Date(nowMs + overlapMs).toISOString() } });
}
