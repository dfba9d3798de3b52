import { Inject, Injectable } from '@nestjs/common';
import { modelName, type ApiKeyCreatedV2 } from '@penstock/contract-events';
import { keyScopes, type createKeyRequest, type rotateKeyRequest } from '@penstock/contract-http';
import { apiKeyDecider, apiKeyRef, defaultProjectId, organisationDecider, organisationRef, projectDecider, projectRef, ROOT_ORGANISATION_ID, type ApiKeyEntry, type Principal, type ServiceAccountEntry } from '@penstock/domain-access';
import type { z } from 'zod';
import { decideAccess } from '../access-commands.js';
import type { GatewayPorts } from '../gateway-ports.js';
import type { GatewayViews } from '../gateway-views.js';
import { RequestFault } from '../http/request-fault.js';
import { onRoute, type RouteCall, type RouteGroup } from '../http/route-call.js';
import type { KeyUses } from '../access/key-uses.js';
import { GATEWAY_PORTS, GATEWAY_VIEWS, KEY_USES } from '../tokens.js';
import { maySee, unixSeconds } from './require-operator.js';

type CreateBody = z.output<typeof createKeyRequest>;
type RotateBody = z.output<typeof rotateKeyRequest>;

/** Scopes that a kind of key can use at all. */
const ADMIN_ONLY = /^(tenants|keys|limits|platform|models\.write)/;

/** API keys: shown once, then known by their HMAC alone. */
@Injectable()
export class KeyRoutes implements RouteGroup {
  readonly handlers = [
    onRoute<unknown, CreateBody>('POST /admin/v1/keys', (call) => this.create(call)),
    onRoute('GET /admin/v1/keys', ({ principal }) => Promise.resolve({
      data: [...this.views.access.state().keys.values()].filter((key) => maySee(principal, key.organisationId)).map((key) => this.body(key)),
    })),
    onRoute<unknown, RotateBody>('POST /admin/v1/keys/{key_id}/rotate', (call) => this.rotate(call)),
    onRoute('DELETE /admin/v1/keys/{key_id}', (call) => this.revoke(call)),
  ];

  constructor(@Inject(GATEWAY_PORTS) readonly ports: GatewayPorts, @Inject(GATEWAY_VIEWS) readonly views: GatewayViews, @Inject(KEY_USES) private readonly uses: KeyUses) {}

  private async create({ principal, body, requestId }: RouteCall<unknown, CreateBody>): Promise<unknown> {
    const badModel = body.models?.findIndex((name) => !modelName.safeParse(name).success) ?? -1;
    if (badModel >= 0) throw new RequestFault({ code: 'invalid_value', message: `'models[${badModel}]' is not a model name.`, param: `models[${badModel}]` });
    requireOwnScopes(principal, body.scopes);
    const badScope = body.scopes?.findIndex((scope) => (body.kind === 'inference') === ADMIN_ONLY.test(scope) && !scope.endsWith('.read')) ?? -1;
    if (badScope >= 0) throw new RequestFault({ code: 'invalid_value', message: `'scopes[${badScope}]' is nothing that an ${body.kind} key can do.`, param: `scopes[${badScope}]` });
    const account = this.serviceAccountOf(principal, body);
    const { organisationId, projectId } = await this.projectFor(principal, account?.projectId ?? body.project_id, requestId);
    return this.mint({ organisationId, projectId, name: body.name, kind: body.kind, models: body.models, expiresAt: body.expires_at, serviceAccountId: account?.serviceAccountId ?? null, scopes: body.scopes, replacesKeyId: null }, requestId);
  }

  /** The successor may do what the key may, and no more; both work until the overlap ends. */
  private async rotate({ principal, params, body, requestId }: RouteCall<unknown, RotateBody>): Promise<unknown> {
    const old = this.keyOf(principal, params['key_id'] ?? '');
    requireOwnScopes(principal, old.scopes);
    const nowMs = this.ports.clock.now();
    const keyId = this.ports.ids.next('key');
    const { organisationId, projectId, name, kind, models, serviceAccountId, scopes } = old;
    const made = await this.mint({ organisationId, projectId, name, kind, models, expiresAt: body.expires_at, serviceAccountId, scopes, replacesKeyId: old.keyId }, requestId, keyId);
    try {
      await decideAccess(this, apiKeyDecider, apiKeyRef(old.keyId), { kind: 'rotate', replacedByKeyId: keyId, nowMs, overlapMs: body.overlap_seconds * 1_000 }, requestId);
    } catch (error) {
      // Nobody has seen the new key, and nobody will.
      await decideAccess(this, apiKeyDecider, apiKeyRef(keyId), { kind: 'revoke', reason: 'its rotation was refused' }, requestId);
      throw error;
    }
    return made;
  }

  private async mint(settings: Omit<ApiKeyCreatedV2, 'keyId' | 'hmac' | 'prefix' | 'lastFour'>, requestId: string, keyId = this.ports.ids.next('key')): Promise<unknown> {
    const { key, hmac, prefix, lastFour } = this.ports.keys.mint();
    const created: ApiKeyCreatedV2 = { keyId, hmac, prefix, lastFour, ...settings };
    const nowMs = this.ports.clock.now();
    await decideAccess(this, apiKeyDecider, apiKeyRef(created.keyId), { kind: 'create', key: created, nowMs }, requestId);
    const expiresAtMs = created.expiresAt === null ? null : Date.parse(created.expiresAt);
    return { ...this.body({ ...created, createdAtMs: nowMs, expiresAtMs, revokedAtMs: null, replacedByKeyId: null, lastUsedAtMs: null }), key };
  }

  private async revoke({ principal, params, requestId }: RouteCall): Promise<unknown> {
    const key = this.keyOf(principal, params['key_id'] ?? '');
    const { keyId } = key;
    await decideAccess(this, apiKeyDecider, apiKeyRef(keyId), { kind: 'revoke', reason: `revoked by ${principal.keyId}` }, requestId);
    return this.body(this.views.access.state().keys.get(keyId) ?? { ...key, revokedAtMs: this.ports.clock.now() });
  }

  private keyOf(principal: Principal, keyId: string): ApiKeyEntry {
    const key = this.views.access.state().keys.get(keyId);
    if (key === undefined || !maySee(principal, key.organisationId)) throw new RequestFault({ code: 'not_found', message: 'No such key; list the keys to see their ids.', param: 'key_id' });
    return key;
  }

  private serviceAccountOf(principal: Principal, { service_account_id: id, project_id: projectId }: CreateBody): ServiceAccountEntry | undefined {
    if (id === null) return undefined;
    const account = this.views.access.state().serviceAccounts.get(id);
    if (account === undefined || !maySee(principal, account.organisationId)) throw new RequestFault({ code: 'not_found', message: 'No such service account; list them to see their ids.', param: 'service_account_id' });
    if (account.disabledAtMs !== null) throw new RequestFault({ code: 'invalid_value', message: `Service account ${id} is disabled, so a key of it would not work.`, param: 'service_account_id' });
    if (projectId !== undefined && projectId !== account.projectId) throw new RequestFault({ code: 'invalid_value', message: `Service account ${id} belongs to project ${account.projectId}. Leave 'project_id' out.`, param: 'project_id' });
    return account;
  }

  private body(key: ApiKeyEntry): Record<string, unknown> {
    const lastUsedAtMs = Math.max(key.lastUsedAtMs ?? 0, this.uses.lastUsedAtMs(key.keyId) ?? 0);
    return {
      id: key.keyId, name: key.name, kind: key.kind, organisation_id: key.organisationId, project_id: key.projectId, redacted: `${key.prefix}…${key.lastFour}`, models: key.models,
      created_at: unixSeconds(key.createdAtMs), expires_at: key.expiresAtMs === null ? null : unixSeconds(key.expiresAtMs), revoked_at: key.revokedAtMs === null ? null : unixSeconds(key.revokedAtMs),
      scopes: key.scopes, service_account_id: key.serviceAccountId, replaced_by: key.replacedByKeyId, last_used_at: lastUsedAtMs === 0 ? null : unixSeconds(lastUsedAtMs),
    };
  }

  /** The project of a new key. The operator's own organisation comes into being with its first key. */
  private async projectFor(principal: Principal, asked: string | undefined, requestId: string): Promise<{ organisationId: string; projectId: string }> {
    const { organisations, projects } = this.views.access.state();
    const { organisationId } = principal;
    const projectId = asked ?? defaultProjectId(organisationId);
    const project = projects.get(projectId);
    if (project !== undefined && maySee(principal, project.organisationId)) return { organisationId: project.organisationId, projectId };
    if (asked !== undefined) throw new RequestFault({ code: 'not_found', message: 'No such project; list the projects to see their ids.', param: 'project_id' });
    if (organisationId === ROOT_ORGANISATION_ID && !organisations.has(organisationId)) {
      await decideAccess(this, organisationDecider, organisationRef(organisationId), { kind: 'create', organisationId, name: 'Operator' }, requestId);
    }
    await decideAccess(this, projectDecider, projectRef(projectId), { kind: 'create', projectId, organisationId, name: 'default' }, requestId);
    return { organisationId, projectId };
  }
}

/** A narrowed key makes no key that may do more than itself. */
function requireOwnScopes({ scopes: own }: Principal, asked: readonly string[] | null): void {
  if (own === undefined || own === null) return;
  const beyond = (asked ?? keyScopes).find((scope) => !own.includes(scope));
  if (beyond !== undefined) throw new RequestFault({ code: 'insufficient_permissions', message: `Your key lacks the scope '${beyond}', so it cannot give it to another one. Name fewer scopes.`, param: 'scopes' });
}
