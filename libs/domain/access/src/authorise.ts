import type { AccessState, ApiKeyEntry } from './access-projection.js';
import { ROOT_ORGANISATION_ID } from './refs.js';

/** Who a request comes from. Everything it may touch follows from this and never from what the request says. */
export interface Principal {
  /** `root` is the installation's bootstrap key: it opens everything. */
  readonly kind: 'inference' | 'admin' | 'root';
  readonly organisationId: string;
  readonly projectId: string;
  readonly keyId: string;
  /** Model names the key may call; null for every model of its organisation. */
  readonly models: readonly string[] | null;
  /** What the key may do; left out or null, everything that its kind opens. */
  readonly scopes?: readonly string[] | null;
}

export type Authorisation =
  | { readonly kind: 'authorised'; readonly principal: Principal }
  /** A revoked key looks like one that never was, and so does one of an organisation that is suspended. */
  | { readonly kind: 'refused'; readonly reason: 'invalid' | 'expired' };

/** Finds the principal behind the HMAC of a presented key. */
export function authorise(state: AccessState, hmac: string, nowMs: number): Authorisation {
  const keyId = state.keyIdByHmac.get(hmac);
  const key = keyId === undefined ? undefined : state.keys.get(keyId);
  if (key === undefined || isStopped(state, key)) return { kind: 'refused', reason: 'invalid' };
  if (key.expiresAtMs !== null && key.expiresAtMs <= nowMs) return { kind: 'refused', reason: 'expired' };
  return { kind: 'authorised', principal: principalOf(key) };
}

/** True for a key that was revoked, or whose service account was disabled or organisation suspended. One that merely expired, or is not known here yet, was stopped by nobody. */
export function wasStopped(state: AccessState, keyId: string): boolean {
  const key = state.keys.get(keyId);
  return key !== undefined && isStopped(state, key);
}

function isStopped(state: AccessState, { revokedAtMs, serviceAccountId, organisationId }: ApiKeyEntry): boolean {
  const suspendedAtMs = state.organisations.get(organisationId)?.suspendedAtMs ?? null;
  return suspendedAtMs !== null || revokedAtMs !== null || (serviceAccountId !== null && state.serviceAccounts.get(serviceAccountId)?.disabledAtMs !== null);
}

function principalOf(key: ApiKeyEntry): Principal {
  return { kind: key.kind, organisationId: key.organisationId, projectId: key.projectId, keyId: key.keyId, models: key.models, scopes: key.scopes };
}

/** True for whoever runs the installation: the root key, and admin keys of the root organisation. */
export function isOperator(principal: Principal): boolean {
  return principal.kind === 'root' || (principal.kind === 'admin' && principal.organisationId === ROOT_ORGANISATION_ID);
}

/** Whether the key may do what a route is for. */
export function hasScope(principal: Principal, scope: string): boolean {
  return principal.scopes === undefined || principal.scopes === null || principal.scopes.includes(scope);
}

/** Whether the key itself may call the model; whether its organisation may is the catalogue's to say. */
export function mayCallModel(principal: Principal, modelName: string): boolean {
  return principal.models === null || principal.models.includes(modelName);
}
