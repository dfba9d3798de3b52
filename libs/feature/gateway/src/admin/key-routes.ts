import { Inject, Injectable } from '@nestjs/common';
import { modelName, type ApiKeyCreatedV1 } from '@penstock/contract-events';
import type { createKeyRequest } from '@penstock/contract-http';
import { apiKeyDecider, apiKeyRef, defaultProjectId, organisationDecider, organisationRef, projectDecider, projectRef, ROOT_ORGANISATION_ID, type ApiKeyEntry, type Principal } from '@penstock/domain-access';
import type { z } from 'zod';
import { decideAccess } from '../access-commands.js';
import type { GatewayPorts } from '../gateway-ports.js';
import type { GatewayViews } from '../gateway-views.js';
import { RequestFault } from '../http/request-fault.js';
import { onRoute, type RouteCall, type RouteGroup } from '../http/route-call.js';
import { GATEWAY_PORTS, GATEWAY_VIEWS } from '../tokens.js';
import { maySee, unixSeconds } from './require-operator.js';

type CreateBody = z.output<typeof createKeyRequest>;

/** API keys: shown once, then known by their HMAC alone. */
@Injectable()
export class KeyRoutes implements RouteGroup {
  readonly handlers = [
    onRoute<unknown, CreateBody>('POST /admin/v1/keys', (call) => this.create(call)),
    onRoute('GET /admin/v1/keys', ({ principal }) => Promise.resolve({
      data: [...this.views.access.state().keys.values()].filter((key) => maySee(principal, key.organisationId)).map(keyBody),
    })),
    onRoute('DELETE /admin/v1/keys/{key_id}', (call) => this.revoke(call)),
  ];

  constructor(@Inject(GATEWAY_PORTS) readonly ports: GatewayPorts, @Inject(GATEWAY_VIEWS) readonly views: GatewayViews) {}

  private async create({ principal, body, requestId }: RouteCall<unknown, CreateBody>): Promise<unknown> {
    const badModel = body.models?.findIndex((name) => !modelName.safeParse(name).success) ?? -1;
    if (badModel >= 0) throw new RequestFault({ code: 'invalid_value', message: `'models[${badModel}]' is not a model name.`, param: `models[${badModel}]` });
    const { organisationId, projectId } = await this.projectFor(principal, body.project_id, requestId);
    const { key, hmac, prefix, lastFour } = this.ports.keys.mint();
    const created: ApiKeyCreatedV1 = {
      keyId: this.ports.ids.next('key'), organisationId, projectId, name: body.name, kind: body.kind, hmac, prefix, lastFour, models: body.models, expiresAt: body.expires_at,
    };
    const nowMs = this.ports.clock.now();
    await decideAccess(this, apiKeyDecider, apiKeyRef(created.keyId), { kind: 'create', key: created, nowMs }, requestId);
    return { ...keyBody({ ...created, createdAtMs: nowMs, expiresAtMs: created.expiresAt === null ? null : Date.parse(created.expiresAt), revokedAtMs: null }), key };
  }

  private async revoke({ principal, params, requestId }: RouteCall): Promise<unknown> {
    const keyId = params['key_id'] ?? '';
    const key = this.views.access.state().keys.get(keyId);
    if (key === undefined || !maySee(principal, key.organisationId)) throw new RequestFault({ code: 'not_found', message: 'No such key; list the keys to see their ids.', param: 'key_id' });
    await decideAccess(this, apiKeyDecider, apiKeyRef(keyId), { kind: 'revoke', reason: `revoked by ${principal.keyId}` }, requestId);
    return keyBody(this.views.access.state().keys.get(keyId) ?? { ...key, revokedAtMs: this.ports.clock.now() });
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

function keyBody(key: ApiKeyEntry): Record<string, unknown> {
  return {
    id: key.keyId, name: key.name, kind: key.kind, organisation_id: key.organisationId, project_id: key.projectId, redacted: `${key.prefix}…${key.lastFour}`, models: key.models,
    created_at: unixSeconds(key.createdAtMs), expires_at: key.expiresAtMs === null ? null : unixSeconds(key.expiresAtMs), revoked_at: key.revokedAtMs === null ? null : unixSeconds(key.revokedAtMs),
  };
}
