import { Inject, Injectable } from '@nestjs/common';
import { modelName, type LimitsSetV1 } from '@penstock/contract-events';
import type { limitsQuery, setLimitsRequest } from '@penstock/contract-http';
import { isOperator, limitsDecider, limitsRef, type Principal } from '@penstock/domain-access';
import type { z } from 'zod';
import { decideAccess } from '../access-commands.js';
import type { GatewayPorts } from '../gateway-ports.js';
import type { GatewayViews } from '../gateway-views.js';
import { RequestFault } from '../http/request-fault.js';
import { onRoute, type RouteCall, type RouteGroup } from '../http/route-call.js';
import { GATEWAY_PORTS, GATEWAY_VIEWS } from '../tokens.js';
import { maySee } from './require-operator.js';

type SetBody = z.output<typeof setLimitsRequest>;

/** What organisations, projects and keys may use at most. */
@Injectable()
export class LimitRoutes implements RouteGroup {
  readonly handlers = [
    onRoute<unknown, SetBody>('POST /admin/v1/limits', (call) => this.set(call)),
    onRoute<z.output<typeof limitsQuery>>('GET /admin/v1/limits', ({ principal, query }) => Promise.resolve({
      data: [...this.views.access.state().limits.values()].flatMap((subject) => [...subject.values()])
        .filter((set) => maySee(principal, set.organisationId) && (query.subject_id === undefined || query.subject_id === set.subjectId)).slice(0, query.limit).map(limitsBody),
    })),
  ];

  constructor(@Inject(GATEWAY_PORTS) readonly ports: GatewayPorts, @Inject(GATEWAY_VIEWS) readonly views: GatewayViews) {}

  private async set({ principal, body, requestId }: RouteCall<unknown, SetBody>): Promise<unknown> {
    if (body.model !== null && !modelName.safeParse(body.model).success) throw new RequestFault({ code: 'invalid_value', message: `'model' is not a model name.`, param: 'model' });
    const data: LimitsSetV1 = {
      ...this.subjectOf(principal, body.subject_id), subjectId: body.subject_id, model: body.model,
      limits: { requestsPerMinute: body.requests_per_minute, tokensPerMinute: body.tokens_per_minute, concurrency: body.concurrency, contextTokensMax: body.context_tokens_max, priorityTier: body.priority_tier },
    };
    await decideAccess(this, limitsDecider, limitsRef(data.subjectId), { kind: 'set', ...data }, requestId);
    return limitsBody(data);
  }

  /** An organisation limits its projects and keys itself; what limits the organisation is the operator's to say. */
  private subjectOf(principal: Principal, subjectId: string): { readonly subject: LimitsSetV1['subject']; readonly organisationId: string } {
    const { organisations, projects, keys } = this.views.access.state();
    if (organisations.has(subjectId) && maySee(principal, subjectId)) {
      if (isOperator(principal)) return { subject: 'organisation', organisationId: subjectId };
      throw new RequestFault({ code: 'insufficient_permissions', message: 'The limits of an organisation are set by the operator of the installation. Set limits of its projects or keys.', param: 'subject_id' });
    }
    const project = projects.get(subjectId);
    if (project !== undefined && maySee(principal, project.organisationId)) return { subject: 'project', organisationId: project.organisationId };
    const key = keys.get(subjectId);
    if (key !== undefined && maySee(principal, key.organisationId)) return { subject: 'key', organisationId: key.organisationId };
    throw new RequestFault({ code: 'not_found', message: 'No such organisation, project or key; list them to see their ids.', param: 'subject_id' });
  }
}

function limitsBody({ subject, subjectId, organisationId, model, limits }: LimitsSetV1): unknown {
  return {
    subject, subject_id: subjectId, organisation_id: organisationId, model, requests_per_minute: limits.requestsPerMinute, tokens_per_minute: limits.tokensPerMinute, concurrency: limits.concurrency,
    context_tokens_max: limits.contextTokensMax, priority_tier: limits.priorityTier,
  };
}
