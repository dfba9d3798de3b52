import { Inject, Injectable } from '@nestjs/common';
import { getFleet, listEndpoints, listModelVersions, projectionOwners, verifyProjections } from '@penstock/contract-commands';
import type { verifyRequest } from '@penstock/contract-http';
import { listEndpointViews, listModelVersionViews } from '@penstock/domain-catalog';
import { CommandFailedError, isId, ServiceUnavailableError } from '@penstock/kernel';
import type { z } from 'zod';
import { askService } from '../ask-service.js';
import type { GatewayPorts } from '../gateway-ports.js';
import type { GatewayViews } from '../gateway-views.js';
import { RequestFault } from '../http/request-fault.js';
import { onRoute, type RouteCall, type RouteGroup } from '../http/route-call.js';
import { GATEWAY_PORTS, GATEWAY_VIEWS } from '../tokens.js';
import { maySee, requireOperator } from './require-operator.js';
import { retireModel } from './retire-model.js';

const MODEL_VERSIONS_MAX = 1_000;
const ENDPOINTS_MAX = 10_000;
/** Rebuilding every projection from the first event takes a while. */
const VERIFY_TIMEOUT_MS = 300_000;

/** Model versions, endpoints, the fleet and its projections. */
@Injectable()
export class PlatformRoutes implements RouteGroup {
  readonly handlers = [
    onRoute('GET /admin/v1/model-versions', (call) => this.modelVersions(call)),
    onRoute('GET /admin/v1/endpoints', (call) => this.endpoints(call)),
    onRoute('DELETE /admin/v1/endpoints/{endpoint_id}', (call) => this.retire(call)),
    onRoute('GET /admin/v1/fleet', (call) => {
      requireOperator(call.principal);
      return askService(this.ports, getFleet, {}, call);
    }),
    onRoute<unknown, z.output<typeof verifyRequest>>('POST /admin/v1/replay/verify', (call) => this.verify(call)),
  ];

  constructor(@Inject(GATEWAY_PORTS) private readonly ports: GatewayPorts, @Inject(GATEWAY_VIEWS) private readonly views: GatewayViews) {}

  private async modelVersions(call: RouteCall): Promise<unknown> {
    const catalog = this.views.catalog.state();
    const { modelVersions } = await askService(this.ports, listModelVersions, { limit: MODEL_VERSIONS_MAX }, call)
      .catch(ifAway(() => ({ modelVersions: [...listModelVersionViews(catalog, { limit: MODEL_VERSIONS_MAX })] })));
    return { data: modelVersions.filter((view) => maySee(call.principal, catalog.modelVersions.get(view.modelVersionId)?.organisationId ?? null)) };
  }

  private async endpoints(call: RouteCall): Promise<unknown> {
    const { endpoints } = await askService(this.ports, listEndpoints, { limit: ENDPOINTS_MAX }, call)
      .catch(ifAway(() => ({ endpoints: [...listEndpointViews(this.views.catalog.state(), { includeRetired: false, limit: ENDPOINTS_MAX })] })));
    return { data: endpoints.filter((view) => maySee(call.principal, view.organisationId)) };
  }

  private async retire(call: RouteCall): Promise<unknown> {
    const endpointId = call.params['endpoint_id'] ?? '';
    const endpoint = isId(endpointId) ? this.views.catalog.state().endpoints.get(endpointId) : undefined;
    if (endpoint === undefined || !maySee(call.principal, endpoint.organisationId)) throw new RequestFault({ code: 'endpoint_not_found', message: 'No such endpoint; list the endpoints to see their ids.', param: 'endpoint_id' });
    await retireModel(this.ports, call, endpoint);
    return { endpoint_id: endpointId };
  }

  private async verify(call: RouteCall<unknown, z.output<typeof verifyRequest>>): Promise<unknown> {
    requireOperator(call.principal);
    const unavailable: string[] = [];
    const results = await Promise.all(projectionOwners.map(async (owner) => {
      const reply = await askService(this.ports, verifyProjections(owner), { swap: call.body.swap }, call, { timeoutMs: VERIFY_TIMEOUT_MS }).catch((error: unknown) => {
        if (!(error instanceof ServiceUnavailableError) && !(error instanceof CommandFailedError) && !(error instanceof RequestFault)) throw error;
        unavailable.push(owner);
        return { projections: [] };
      });
      return reply.projections;
    }));
    const projections = results.flat();
    return { identical: unavailable.length === 0 && projections.every((projection) => projection.identical), projections, unavailable };
  }
}

/** Answers from memory while the service that would know best is away. */
function ifAway<Value>(otherwise: () => Value): (error: unknown) => Value {
  return (error) => {
    if (error instanceof ServiceUnavailableError || error instanceof CommandFailedError) return otherwise();
    throw error;
  };
}
