import { Inject, Injectable } from '@nestjs/common';
import { listReservations, makeReservation, planDeployment, planNodes, releaseReservation } from '@penstock/contract-commands';
import type { FittingAlternative } from '@penstock/contract-events';
import type { CreatePlanRequest, CreateReservationRequest, PlanBody, reservationsQuery } from '@penstock/contract-http';
import { findEndpointByName } from '@penstock/domain-catalog';
import { isId } from '@penstock/kernel';
import type { z } from 'zod';
import { askService } from '../ask-service.js';
import type { GatewayPorts } from '../gateway-ports.js';
import type { GatewayViews } from '../gateway-views.js';
import { RequestFault } from '../http/request-fault.js';
import { onRoute, type RouteCall, type RouteGroup } from '../http/route-call.js';
import { GATEWAY_PORTS, GATEWAY_VIEWS } from '../tokens.js';
import { maySee, requireOperator } from './require-operator.js';

/** The scheduler's names of what the caller called otherwise. */
const LEVEL_PARAMS = {
  'level.endpointId': 'endpoint', 'level.organisationId': 'organisation_id', 'level.requestsPerS': 'requests_per_s', 'level.tokensPerS': 'tokens_per_s', 'level.replicas': 'replicas', 'level.promptTokens': 'prompt_tokens',
  'level.completionTokens': 'completion_tokens', 'level.ttftMs': 'ttft_ms', 'level.itlMs': 'itl_ms', 'level.gpuType': 'gpu_type', 'level.from': 'from', 'level.to': 'to', 'level.priority': 'priority',
};
const PLAN_PARAMS = {
  model: 'deployment.model', gpuType: 'deployment.gpu_type', gpuCount: 'deployment.gpu_count', precision: 'deployment.precision', requestsPerS: 'deployment.requests_per_s', replicas: 'deployment.replicas',
  promptTokens: 'deployment.prompt_tokens', completionTokens: 'deployment.completion_tokens', ttftMs: 'deployment.ttft_ms', itlMs: 'deployment.itl_ms', add: 'nodes.add',
};

/** Packing a large fleet several times takes a while. */
const PLAN_TIMEOUT_MS = 60_000;

/** Reservations and dry runs. Both concern what all tenants share, so they are the operator's. */
@Injectable()
export class CommitmentRoutes implements RouteGroup {
  readonly handlers = [
    onRoute<unknown, CreateReservationRequest>('POST /admin/v1/reservations', (call) => this.reserve(call)),
    onRoute<z.output<typeof reservationsQuery>>('GET /admin/v1/reservations', (call) => this.list(call)),
    onRoute('DELETE /admin/v1/reservations/{reservation_id}', (call) => this.release(call)),
    onRoute<unknown, CreatePlanRequest>('POST /admin/v1/plans', (call) => this.plan(call)),
  ];

  constructor(@Inject(GATEWAY_PORTS) private readonly ports: GatewayPorts, @Inject(GATEWAY_VIEWS) private readonly views: GatewayViews) {}

  private async reserve(call: RouteCall<unknown, CreateReservationRequest>): Promise<unknown> {
    requireOperator(call.principal);
    const { body } = call;
    if (body.organisation_id !== null && !this.views.access.state().organisations.has(body.organisation_id)) throw new RequestFault({ code: 'not_found', message: 'No such organisation; list the organisations to see their ids.', param: 'organisation_id' });
    const reply = await askService(this.ports, makeReservation, {
      level: {
        endpointId: this.endpointIdOf(body), organisationId: body.organisation_id, requestsPerS: body.requests_per_s, tokensPerS: body.tokens_per_s, replicas: body.replicas, promptTokens: body.prompt_tokens,
        completionTokens: body.completion_tokens, latencyClass: body.latency_class, ttftMs: body.ttft_ms, itlMs: body.itl_ms, priority: body.priority, gpuType: body.gpu_type, tolerates: body.tolerates, from: body.from, to: body.to,
      },
    }, call, { params: LEVEL_PARAMS, timeoutMs: PLAN_TIMEOUT_MS });
    if (reply.kind === 'made') return reply.reservation;
    throw new RequestFault({ code: 'reservation_refused', message: refusalText(reply.refusal.reason, reply.refusal.wouldFit), param: 'endpoint' });
  }

  private endpointIdOf({ endpoint, organisation_id }: CreateReservationRequest): string {
    const catalog = this.views.catalog.state();
    const found = catalog.endpoints.get(endpoint) ?? findEndpointByName(catalog, endpoint, organisation_id) ?? [...catalog.endpoints.values()].find(({ name, status }) => name === endpoint && status === 'active');
    if (found === undefined) throw new RequestFault({ code: 'endpoint_not_found', message: `There is no endpoint ${endpoint}; deploy it first, or list the endpoints.`, param: 'endpoint' });
    return found.endpointId;
  }

  /** An organisation sees what was promised to it. */
  private async list(call: RouteCall<z.output<typeof reservationsQuery>>): Promise<unknown> {
    const { reservations } = await askService(this.ports, listReservations, { includeEnded: call.query.include_ended === 'true', limit: call.query.limit }, call);
    return { data: reservations.filter(({ level }) => level.organisationId === null ? maySee(call.principal, this.views.catalog.state().endpoints.get(level.endpointId)?.organisationId ?? null) : maySee(call.principal, level.organisationId)) };
  }

  private async release(call: RouteCall): Promise<unknown> {
    requireOperator(call.principal);
    const reservationId = call.params['reservation_id'] ?? '';
    if (!isId(reservationId)) throw new RequestFault({ code: 'not_found', message: 'No such reservation; list the reservations to see their ids.', param: 'reservation_id' });
    await askService(this.ports, releaseReservation, { reservationId, reason: `released by ${call.principal.keyId}` }, call, { params: { reservationId: 'reservation_id' } });
    return { reservation_id: reservationId };
  }

  private async plan(call: RouteCall<unknown, CreatePlanRequest>): Promise<PlanBody> {
    requireOperator(call.principal);
    const { deployment, nodes } = call.body;
    if ((deployment === undefined) === (nodes === undefined)) throw new RequestFault({ code: 'invalid_value', message: `Give 'deployment' or 'nodes', and not both.`, param: deployment === undefined ? 'deployment' : 'nodes' });
    if (nodes !== undefined) {
      const reply = await askService(this.ports, planNodes, { add: nodes.add, removeNodeIds: nodes.remove, loseDomains: nodes.lose }, call, { params: nodeParams(nodes), timeoutMs: PLAN_TIMEOUT_MS });
      return { ...reply, requests_per_s: null, exact: null, profiles: [], advice: null };
    }
    if (deployment === undefined) throw new RequestFault({ code: 'missing_required_parameter', message: `'deployment' is missing.`, param: 'deployment' });
    const { plan, requestsPerS, isExact, profiles, advice } = await askService(this.ports, planDeployment, {
      model: deployment.model, gpuType: deployment.gpu_type, gpuCount: deployment.gpu_count, precision: deployment.precision, requestsPerS: deployment.requests_per_s, replicas: deployment.replicas,
      promptTokens: deployment.prompt_tokens, completionTokens: deployment.completion_tokens, latencyClass: deployment.latency_class, ttftMs: deployment.ttft_ms, itlMs: deployment.itl_ms, allowsSpot: deployment.allows_spot, isExact: deployment.exact,
    }, call, { params: PLAN_PARAMS, timeoutMs: PLAN_TIMEOUT_MS });
    return { plan, added: [], requests_per_s: requestsPerS, exact: isExact, profiles, advice };
  }
}

function nodeParams(nodes: NonNullable<CreatePlanRequest['nodes']>): Readonly<Record<string, string>> {
  const each = (from: string, to: string, count: number) => Array.from({ length: count }, (_, index) => [`${from}[${index}]`, `nodes.${to}[${index}]`] as const);
  return { add: 'nodes.add', ...Object.fromEntries([...each('add', 'add', nodes.add.length), ...each('removeNodeIds', 'remove', nodes.remove.length), ...each('loseDomains', 'lose', nodes.lose.length)]) };
}

/** Why not, and what would fit: everything that the log says of it. */
function refusalText(reason: string, wouldFit: readonly FittingAlternative[]): string {
  const said = `${reason.charAt(0).toUpperCase()}${reason.slice(1)}.`;
  return wouldFit.length === 0 ? said : `${said} ${wouldFit.map(({ says }) => says).join(' ')}`;
}
