import { Inject, Injectable } from '@nestjs/common';
import { removeTrafficSplit, setTrafficSplit } from '@penstock/contract-commands';
import type { setTrafficSplitRequest, TrafficSplitBody } from '@penstock/contract-http';
import { isOperator } from '@penstock/domain-access';
import type { TrafficSplitState } from '@penstock/domain-catalog';
import type { z } from 'zod';
import { atMost } from '../access-commands.js';
import { askService } from '../ask-service.js';
import type { GatewayPorts } from '../gateway-ports.js';
import type { GatewayViews } from '../gateway-views.js';
import { RequestFault } from '../http/request-fault.js';
import { onRoute, type RouteCall, type RouteGroup } from '../http/route-call.js';
import { GATEWAY_PORTS, GATEWAY_VIEWS } from '../tokens.js';
import { maySee, unixSeconds } from './require-operator.js';

type SetBody = z.output<typeof setTrafficSplitRequest>;

/** How long the answer waits until this gateway acts by what it stored. */
const READ_YOUR_WRITE_MS = 2_000;

/** Names that several endpoints share by weight. */
@Injectable()
export class TrafficRoutes implements RouteGroup {
  readonly handlers = [
    onRoute<unknown, SetBody>('POST /admin/v1/traffic-splits', (call) => this.set(call)),
    onRoute('GET /admin/v1/traffic-splits', ({ principal }) => Promise.resolve({
      data: [...this.views.catalog.state().splits.values()].filter((split) => maySee(principal, split.organisationId)).map((split) => this.bodyOf(split)),
    })),
    onRoute('DELETE /admin/v1/traffic-splits/{split_id}', (call) => this.remove(call)),
  ];

  constructor(@Inject(GATEWAY_PORTS) private readonly ports: GatewayPorts, @Inject(GATEWAY_VIEWS) private readonly views: GatewayViews) {}

  /** An operator splits names for everybody, an organisation its own. */
  private async set(call: RouteCall<unknown, SetBody>): Promise<unknown> {
    const { principal, body } = call;
    const { splitId, sequence } = await askService(this.ports, setTrafficSplit, {
      name: body.model, organisationId: isOperator(principal) ? null : principal.organisationId, targets: body.targets, sticky: body.sticky, reason: body.reason,
    }, call, { params: { name: 'model' } });
    await this.seen(sequence);
    const split = this.views.catalog.state().splits.get(splitId);
    if (split === undefined) throw new RequestFault({ code: 'service_unavailable', message: 'The split is stored, and this gateway has not seen it yet. List the splits in a moment.', retryAfterMs: READ_YOUR_WRITE_MS });
    return this.bodyOf(split);
  }

  private async remove(call: RouteCall): Promise<unknown> {
    const splitId = call.params['split_id'] ?? '';
    const split = this.views.catalog.state().splits.get(splitId);
    const mayChange = split !== undefined && (isOperator(call.principal) || split.organisationId === call.principal.organisationId);
    if (!mayChange) throw new RequestFault({ code: 'not_found', message: 'There is no traffic split of yours with this id; list the splits to see theirs.', param: 'split_id' });
    const { sequence } = await askService(this.ports, removeTrafficSplit, { splitId, reason: 'removed by its owner' }, call);
    await this.seen(sequence);
    return { id: splitId };
  }

  private seen(sequence: number): Promise<void> {
    return atMost(this.ports, READ_YOUR_WRITE_MS, this.views.catalog.waitFor('EV_REGISTRY', sequence));
  }

  private bodyOf({ splitId, name, organisationId, targets, sticky, reason, setAtMs }: TrafficSplitState): TrafficSplitBody {
    const { endpoints } = this.views.catalog.state();
    const weighed = targets.map((target) => ({ ...target, endpoint: endpoints.get(target.endpointId) })).map((target) => ({ ...target, counted: target.endpoint?.status === 'active' ? target.weight : 0 }));
    const sum = weighed.reduce((total, { counted }) => total + counted, 0);
    return {
      id: splitId, model: name, organisation_id: organisationId, sticky, reason, set_at: unixSeconds(setAtMs),
      targets: weighed.map(({ endpointId, endpoint, weight, counted }) => ({
        endpoint_id: endpointId, endpoint: endpoint?.name ?? endpointId, model_version_id: endpoint?.modelVersionId ?? null, weight, share: sum === 0 ? 0 : counted / sum,
      })),
    };
  }
}
