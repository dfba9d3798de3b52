import { authorise, hasScope, redactKey, type AccessState, type KeyMinter, type Principal } from '@penstock/domain-access';
import type { KeyScope, RouteAccess } from '@penstock/contract-http';
import { id } from '@penstock/contract-events';
import type { IncomingHttpHeaders } from 'node:http';
import { z } from 'zod';
import { RequestFault } from './request-fault.js';

/** Who calls, and on behalf of which batch job. */
export interface Caller {
  readonly principal: Principal;
  readonly batchId: string | null;
}

export const INTERNAL_TOKEN_HEADER = 'x-penstock-internal';
export const INTERNAL_TENANT_HEADER = 'x-penstock-tenant';
export const INTERNAL_REQUEST_ID_HEADER = 'x-penstock-request-id';

const tenantHeader = z.strictObject({ organisationId: id, projectId: id, keyId: id, batchId: id.nullable() });

const rootPrincipal: Principal = { kind: 'root', organisationId: 'org_root', projectId: 'proj_root', keyId: 'key_root', models: null };

/** Whoever reads what is open to everybody; nothing can be done in this name. */
const anonymous: Caller = { principal: { kind: 'inference', organisationId: 'org_anonymous', projectId: 'proj_anonymous', keyId: 'key_anonymous', models: [], scopes: [] }, batchId: null };

export interface CallerCheckOptions {
  readonly keys: KeyMinter;
  readonly access: () => AccessState;
  readonly now: () => number;
  readonly adminKey: string;
  readonly internalToken: string | undefined;
  /** What this process alone proves itself with, when it calls its own API. */
  readonly selfToken?: string;
  /** Told of each key that was let in. */
  readonly onUse?: (keyId: string) => void;
}

/** Finds out who calls, from memory alone. */
export class CallerCheck {
  private readonly rootHmac: string;

  constructor(private readonly options: CallerCheckOptions) {
    this.rootHmac = options.keys.hmac(options.adminKey);
  }

  /** True for a call of another service of this installation. */
  isInternal(headers: IncomingHttpHeaders): boolean {
    const token = headers[INTERNAL_TOKEN_HEADER];
    const { internalToken, selfToken, keys } = this.options;
    if (typeof token !== 'string') return false;
    return (internalToken !== undefined && keys.isSame(token, internalToken)) || (selfToken !== undefined && keys.isSame(token, selfToken));
  }

  /** Throws a {@link RequestFault} for a caller that may not use a route with this access. */
  identify(headers: IncomingHttpHeaders, access: RouteAccess, scope: KeyScope): Caller {
    if (access === 'none') return anonymous;
    const internal = this.isInternal(headers) ? headers[INTERNAL_TENANT_HEADER] : undefined;
    const caller = typeof internal === 'string' ? tenantCaller(internal, this.options.access()) : { principal: this.keyHolder(headers.authorization), batchId: null };
    requireAccess(caller.principal, access);
    if (!hasScope(caller.principal, scope)) throw new RequestFault({ code: 'insufficient_permissions', message: `Your key lacks the scope '${scope}' that this route needs. Use another key, or create one with it.` });
    this.options.onUse?.(caller.principal.keyId);
    return caller;
  }

  private keyHolder(authorization: string | undefined): Principal {
    const presented = /^bearer +(\S+) *$/i.exec(authorization ?? '')?.[1];
    if (presented === undefined) {
      throw new RequestFault({ code: 'missing_api_key', message: `You didn't provide an API key. Send it in the Authorization header with Bearer auth, as in 'Authorization: Bearer YOUR_KEY'.` });
    }
    const hmac = this.options.keys.hmac(presented);
    // Both sides are HMACs under a secret pepper, so where they differ tells a caller nothing.
    if (hmac === this.rootHmac) return rootPrincipal;
    const authorisation = authorise(this.options.access(), hmac, this.options.now());
    if (authorisation.kind === 'authorised') return authorisation.principal;
    throw new RequestFault(authorisation.reason === 'expired'
      ? { code: 'expired_api_key', message: `The API key ${redactKey(presented)} has expired. Ask an administrator for a new one.` }
      : { code: 'invalid_api_key', message: `Incorrect API key provided: ${redactKey(presented)}. Ask an administrator for a key of this installation.` });
  }
}

/** A job may call what the key that started it may call. */
function tenantCaller(header: string, access: AccessState): Caller {
  let value: unknown;
  try {
    value = JSON.parse(header);
  } catch {
    value = undefined;
  }
  const tenant = tenantHeader.safeParse(value);
  if (!tenant.success) throw new RequestFault({ code: 'invalid_value', message: `The header ${INTERNAL_TENANT_HEADER} must be JSON with organisationId, projectId, keyId and batchId.`, param: INTERNAL_TENANT_HEADER });
  const { organisationId, projectId, keyId, batchId } = tenant.data;
  const key = access.keys.get(keyId);
  return { principal: { kind: 'inference', organisationId, projectId, keyId, models: key?.models ?? null, scopes: key?.scopes ?? null }, batchId };
}

function requireAccess(principal: Principal, access: RouteAccess): void {
  if (access === 'none' || access === 'either' || principal.kind === 'root' || principal.kind === access) return;
  throw new RequestFault({ code: 'insufficient_permissions', message: `This route needs ${access === 'admin' ? 'an admin' : 'an inference'} key; the key you sent is of the other kind.` });
}
