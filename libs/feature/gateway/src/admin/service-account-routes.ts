import { Inject, Injectable } from '@nestjs/common';
import type { createServiceAccountRequest } from '@penstock/contract-http';
import { defaultProjectId, serviceAccountDecider, serviceAccountRef, type ServiceAccountEntry } from '@penstock/domain-access';
import type { z } from 'zod';
import { decideAccess } from '../access-commands.js';
import type { GatewayPorts } from '../gateway-ports.js';
import type { GatewayViews } from '../gateway-views.js';
import { RequestFault } from '../http/request-fault.js';
import { onRoute, type RouteCall, type RouteGroup } from '../http/route-call.js';
import { GATEWAY_PORTS, GATEWAY_VIEWS } from '../tokens.js';
import { maySee, unixSeconds } from './require-operator.js';

type CreateBody = z.output<typeof createServiceAccountRequest>;

/** Accounts of programs, whose keys stop together. */
@Injectable()
export class ServiceAccountRoutes implements RouteGroup {
  readonly handlers = [
    onRoute<unknown, CreateBody>('POST /admin/v1/service-accounts', (call) => this.create(call)),
    onRoute('GET /admin/v1/service-accounts', ({ principal }) => Promise.resolve({
      data: [...this.views.access.state().serviceAccounts.values()].filter((account) => maySee(principal, account.organisationId)).map(accountBody),
    })),
    onRoute('DELETE /admin/v1/service-accounts/{service_account_id}', (call) => this.disable(call)),
  ];

  constructor(@Inject(GATEWAY_PORTS) readonly ports: GatewayPorts, @Inject(GATEWAY_VIEWS) readonly views: GatewayViews) {}

  private async create({ principal, body, requestId }: RouteCall<unknown, CreateBody>): Promise<unknown> {
    const projectId = body.project_id ?? defaultProjectId(principal.organisationId);
    const project = this.views.access.state().projects.get(projectId);
    if (project === undefined || !maySee(principal, project.organisationId)) throw new RequestFault({ code: 'not_found', message: 'No such project; list the projects to see their ids, or create one.', param: 'project_id' });
    const account = { serviceAccountId: this.ports.ids.next('sa'), organisationId: project.organisationId, projectId, name: body.name };
    const createdAtMs = this.ports.clock.now();
    await decideAccess(this, serviceAccountDecider, serviceAccountRef(account.serviceAccountId), { kind: 'create', ...account }, requestId);
    return accountBody({ ...account, createdAtMs, disabledAtMs: null });
  }

  private async disable({ principal, params, requestId }: RouteCall): Promise<unknown> {
    const id = params['service_account_id'] ?? '';
    const account = this.views.access.state().serviceAccounts.get(id);
    if (account === undefined || !maySee(principal, account.organisationId)) throw new RequestFault({ code: 'not_found', message: 'No such service account; list them to see their ids.', param: 'service_account_id' });
    await decideAccess(this, serviceAccountDecider, serviceAccountRef(id), { kind: 'disable', reason: `disabled by ${principal.keyId}` }, requestId);
    return accountBody(this.views.access.state().serviceAccounts.get(id) ?? { ...account, disabledAtMs: this.ports.clock.now() });
  }
}

function accountBody({ serviceAccountId, name, organisationId, projectId, createdAtMs, disabledAtMs }: ServiceAccountEntry): unknown {
  return { id: serviceAccountId, name, organisation_id: organisationId, project_id: projectId, created_at: unixSeconds(createdAtMs), disabled_at: disabledAtMs === null ? null : unixSeconds(disabledAtMs) };
}
