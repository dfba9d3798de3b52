import type { ApiKeyCreatedV1, apiKeyCreatedV1, apiKeyRevokedV1, EventOf } from '@penstock/contract-events';
import { accept, refuse, type Decider } from '@penstock/kernel';

export type ApiKeyEvent = EventOf<typeof apiKeyCreatedV1> | EventOf<typeof apiKeyRevokedV1>;
export type ApiKeyCommand =
  | { readonly kind: 'create'; readonly key: ApiKeyCreatedV1; readonly nowMs: number }
  | { readonly kind: 'revoke'; readonly reason: string };
export type ApiKeyState = { readonly key: ApiKeyCreatedV1; readonly revoked: boolean } | null;

/** A key is created once and revoked for good; revoking again changes nothing. */
export const apiKeyDecider: Decider<ApiKeyState, ApiKeyCommand, ApiKeyEvent> = {
  initialState: null,
  decide(command, state) {
    if (command.kind === 'create') {
      const { key, nowMs } = command;
      if (state !== null) return refuse({ code: 'already_exists', message: `Key ${key.keyId} exists already; create another one.` });
      if (key.expiresAt !== null && Date.parse(key.expiresAt) <= nowMs) {
        return refuse({ code: 'invalid_value', message: `'expires_at' lies in the past; give a time after now, or null for a key that does not expire.`, param: 'expires_at' });
      }
      return accept({ type: 'api-key.created.v1', data: key });
    }
    if (state === null) return refuse({ code: 'not_found', message: 'No such key; list the keys to see their ids.' });
    if (state.revoked) return accept();
    return accept({ type: 'api-key.revoked.v1', data: { keyId: state.key.keyId, reason: command.reason } });
  },
  evolve(state, event) {
    if (event.type === 'api-key.created.v1') return { key: event.data, revoked: false };
    return state === null ? null : { ...state, revoked: true };
  },
};
