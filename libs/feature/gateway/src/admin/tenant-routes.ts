import { Inject, Injectable } from '@nestjs/common';
import type { createOrganisationRequest, createProjectRequest, suspensionRequest } from '@penstock/contract-http';
import { defaultProjectId, organisationDecider, organisationRef, projectDecider, projectRef, type OrganisationEntry, type ProjectEntry } from '@penstock/domain-access';
import type { z } from 'zod';
import { decideAccess } from '../access-commands.js';
import type { GatewayPorts } from '../gateway-ports.js';
import type { GatewayViews } from '../gateway-views.js';
import { RequestFault } from '../http/request-fault.js';
import { onRoute, type RouteCall, type RouteGroup } from '../http/route-call.js';
import { GATEWAY_PORTS, GATEWAY_VIEWS } from '../tokens.js';
import { maySee, requireOperator, unixSeconds } from './require-operator.js';

type Suspension = z.output<typeof suspensionRequest>;

/** Organisations and projects. */
@Injectable()
export class TenantRoutes implements RouteGroup {
  readonly handlers = [
    onRoute<unknown, z.output<typeof createOrganisationRequest>>('POST /admin/v1/organisations', (call) => this.createOrganisation(call)),
    onRoute('GET /admin/v1/organisations', ({ principal }) => Promise.resolve({
      data: [...this.views.access.state().organisations.values()].filter((entry) => maySee(principal, entry.organisationId)).map(organisationBody),
    })),
    onRoute<unknown, Suspension>('POST /admin/v1/organisations/{organisation_id}/suspend', (call) => this.change(call, 'suspend')),
    onRoute<unknown, Suspension>('POST /admin/v1/organisations/{organisation_id}/resume', (call) => this.change(call, 'resume')),
    onRoute<unknown, z.output<typeof createProjectRequest>>('POST /admin/v1/projects', (call) => this.createProject(call)),
    onRoute('GET /admin/v1/projects', ({ principal }) => Promise.resolve({
      data: [...this.views.access.state().projects.values()].filter((entry) => maySee(principal, entry.organisationId)).map(projectBody),
    })),
  ];

  constructor(@Inject(GATEWAY_PORTS) readonly ports: GatewayPorts, @Inject(GATEWAY_VIEWS) readonly views: GatewayViews) {}

  private async createOrganisation({ principal, body, requestId }: RouteCall<unknown, z.output<typeof createOrganisationRequest>>): Promise<unknown> {
    requireOperator(principal);
    const organisationId = this.ports.ids.next('org');
    const createdAtMs = this.ports.clock.now();
    await decideAccess(this, organisationDecider, organisationRef(organisationId), { kind: 'create', organisationId, name: body.name }, requestId);
    const projectId = defaultProjectId(organisationId);
    await decideAccess(this, projectDecider, projectRef(projectId), { kind: 'create', projectId, organisationId, name: 'default' }, requestId);
    return organisationBody({ organisationId, name: body.name, createdAtMs, suspendedAtMs: null });
  }

  private async change({ principal, params, body, requestId }: RouteCall<unknown, Suspension>, kind: 'suspend' | 'resume'): Promise<unknown> {
    requireOperator(principal);
    const id = params['organisation_id'] ?? '';
    const known = this.views.access.state().organisations.get(id);
    if (known === undefined) throw new RequestFault({ code: 'not_found', message: 'No such organisation; list them to see their ids.', param: 'organisation_id' });
    await decideAccess(this, organisationDecider, organisationRef(id), { kind, reason: body.reason }, requestId);
    return organisationBody({ ...known, suspendedAtMs: kind === 'resume' ? null : known.suspendedAtMs ?? this.ports.clock.now() });
  }

  private async createProject({ principal, body, requestId }: RouteCall<unknown, z.output<typeof createProjectRequest>>): Promise<unknown> {
    const organisation = this.views.access.state().organisations.get(body.organisation_id);
    if (organisation === undefined || !maySee(principal, organisation.organisationId)) throw new RequestFault({ code: 'not_found', message: 'No such organisation.', param: 'organisation_id' });
    const { organisationId } = organisation;
    const projectId = this.ports.ids.next('proj');
    const createdAtMs = this.ports.clock.now();
    await decideAccess(this, projectDecider, projectRef(projectId), { kind: 'create', projectId, organisationId, name: body.name }, requestId);
    return projectBody({ projectId, organisationId, name: body.name, createdAtMs });
  }
}

function organisationBody({ organisationId, name, createdAtMs, suspendedAtMs }: OrganisationEntry): unknown {
  return { id: organisationId, name, created_at: unixSeconds(createdAtMs), suspended_at: suspendedAtMs === null ? null : unixSeconds(suspendedAtMs) };
}

function projectBody({ projectId, organisationId, name, createdAtMs }: ProjectEntry): unknown {
  return { id: projectId, organisation_id: organisationId, name, created_at: unixSeconds(createdAtMs) };
}
