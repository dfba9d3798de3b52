import { Inject, Injectable } from '@nestjs/common';
import { getRequestUsage } from '@penstock/contract-commands';
import type { LimitsSetV1, UsageRecord } from '@penstock/contract-events';
import type { OwnLimits, RequestExplanation } from '@penstock/contract-http';
import { contextTokensMaxOf, isOperator, limitsAround, type Principal } from '@penstock/domain-access';
import { isId, ServiceUnavailableError } from '@penstock/kernel';
import { askService } from '../ask-service.js';
import { CHAT_PARTS, type ChatParts } from '../chat/chat-parts.js';
import { explainRequest } from '../explain/explain-request.js';
import type { NotedRefusal, RefusalBook } from '../explain/refusal-book.js';
import type { GatewayPorts } from '../gateway-ports.js';
import type { GatewayViews } from '../gateway-views.js';
import { RequestFault } from '../http/request-fault.js';
import { onRoute, type RouteCall, type RouteGroup } from '../http/route-call.js';
import { NAMES } from '../limits/limit-fault.js';
import { priorityOf } from '../limits/priority-of.js';
import { GATEWAY_PORTS, GATEWAY_VIEWS, REFUSAL_BOOK } from '../tokens.js';

const RETRY_AFTER_MS = 1_000;

/** For callers that want to know where they stand: their limits, and what became of one request. */
@Injectable()
export class ExplainRoutes implements RouteGroup {
  readonly handlers = [
    onRoute('GET /v1/limits', (call) => this.limits(call)),
    onRoute('GET /v1/requests/{request_id}', (call) => this.request(call)),
  ];

  constructor(
    @Inject(GATEWAY_PORTS) private readonly ports: GatewayPorts,
    @Inject(GATEWAY_VIEWS) private readonly views: GatewayViews,
    @Inject(CHAT_PARTS) private readonly parts: ChatParts,
    @Inject(REFUSAL_BOOK) private readonly refusals: RefusalBook,
  ) {}

  private async limits({ principal }: RouteCall): Promise<OwnLimits> {
    const looked = await this.parts.limits.look(principal);
    const sets = limitsAround(this.views.access.state(), principal);
    const general = sets.filter((set) => set.model === null);
    const models = new Set(sets.flatMap((set) => (set.model === null ? [] : [set.model])));
    return {
      object: 'list',
      data: looked.map(({ ask: { set, unit, limit }, slice }) => {
        const remaining = Math.max(0, Math.floor(slice.remaining));
        return {
          object: 'limit', subject: set.subject, subject_id: set.subjectId, model: set.model, name: NAMES[unit], limit, used: limit - remaining, remaining,
          reset_ms: Math.ceil(slice.resetMs), retry_after_ms: remaining > 0 ? 0 : Math.ceil(slice.retryAfterMs || slice.resetMs || RETRY_AFTER_MS),
        };
      }),
      organisation_id: principal.organisationId, project_id: principal.projectId, key_id: principal.keyId,
      ...classOf(general),
      models: Object.fromEntries([...models].map((model) => [model, classOf(sets.filter((set) => set.model === null || set.model === model))])),
    };
  }

  private async request(call: RouteCall): Promise<RequestExplanation> {
    const { params, principal } = call;
    const id = params['request_id'] ?? '';
    const noted = this.refusals.find(id);
    const refusal = noted !== undefined && maySeeRequest(principal, noted) ? noted : undefined;
    const record = isId(id) ? await this.recordOf(call, id, refusal) : undefined;
    const replica = record?.replicaId === undefined || record.replicaId === null ? undefined : this.views.fleet.state().replicas.get(record.replicaId);
    const explanation = explainRequest(id, { record, refusal, replica, hedge: record === undefined && refusal === undefined ? undefined : this.parts.hedged.find(id), isOperator: isOperator(principal) });
    if (explanation === undefined) throw new RequestFault({ code: 'request_not_found', message: 'No such request, or nothing has arrived of it yet: what a request used is known seconds after its end. Refusals are remembered by the gateway that made them.', param: 'request_id' });
    return explanation;
  }

  /** A store that is away leaves what this gateway remembers. */
  private async recordOf(call: RouteCall, requestId: string, refusal: NotedRefusal | undefined): Promise<UsageRecord | undefined> {
    const { principal } = call;
    try {
      const { record } = await askService(this.ports, getRequestUsage, { requestId, ...(isOperator(principal) ? {} : { organisationId: principal.organisationId }) }, call);
      return record !== null && maySeeRequest(principal, record) ? record : undefined;
    } catch (error) {
      if (refusal !== undefined && (error instanceof ServiceUnavailableError || error instanceof RequestFault)) return undefined;
      throw error;
    }
  }
}

/** An inference key sees the requests of its project, an admin key those of its organisation, the operator all. */
function maySeeRequest(principal: Principal, { organisationId, projectId }: { readonly organisationId: string; readonly projectId: string }): boolean {
  if (isOperator(principal)) return true;
  return organisationId === principal.organisationId && (principal.kind !== 'inference' || projectId === principal.projectId);
}

function classOf(sets: readonly LimitsSetV1[]): { readonly context_tokens_max: number | null; readonly priority_tier: string } {
  return { context_tokens_max: contextTokensMaxOf(sets), priority_tier: priorityOf(sets, undefined) };
}
