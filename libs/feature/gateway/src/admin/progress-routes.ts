import { Inject, Injectable } from '@nestjs/common';
import { pullProgress } from '@penstock/contract-commands';
import type { ProgressBody, progressQuery } from '@penstock/contract-http';
import { replicasOf, type FleetState } from '@penstock/domain-lifecycle';
import { isId } from '@penstock/kernel';
import type { z } from 'zod';
import type { GatewayPorts } from '../gateway-ports.js';
import type { GatewayViews } from '../gateway-views.js';
import { EventStream } from '../http/event-stream.js';
import { OpenStreams } from '../http/open-streams.js';
import { RequestFault } from '../http/request-fault.js';
import { ANSWERED, onRoute, type RouteCall, type RouteGroup } from '../http/route-call.js';
import { GATEWAY_PORTS, GATEWAY_VIEWS } from '../tokens.js';
import { requireRoom } from './event-routes.js';
import { maySee } from './require-operator.js';

type ProgressQuery = z.output<typeof progressQuery>;

const nothing = { replica_id: null, phase: null, file: null, completed_bytes: null, total_bytes: null, reason: null } as const;

/** `GET /admin/v1/progress`: what is now, then every step of the start of an endpoint's replicas. */
@Injectable()
export class ProgressRoutes implements RouteGroup {
  readonly handlers = [onRoute<ProgressQuery>('GET /admin/v1/progress', (call) => this.follow(call))];

  constructor(@Inject(GATEWAY_PORTS) private readonly ports: GatewayPorts, @Inject(GATEWAY_VIEWS) private readonly views: GatewayViews, @Inject(OpenStreams) private readonly streams: OpenStreams) {}

  private async follow(call: RouteCall<ProgressQuery>): Promise<typeof ANSWERED> {
    const endpointId = call.query.endpoint_id;
    const endpoint = isId(endpointId) ? this.views.catalog.state().endpoints.get(endpointId) : undefined;
    if (endpoint === undefined || !maySee(call.principal, endpoint.organisationId)) throw new RequestFault({ code: 'endpoint_not_found', message: 'No such endpoint; list the endpoints to see their ids.', param: 'endpoint_id' });
    requireRoom(this.streams);
    const { fleet, catalog } = this.views;
    const steps = new StartSteps(endpointId, fleet.state());
    const stream = new EventStream(call.reply, this.ports.timers);
    const send = (): void => {
      // A model version that was rejected will never be placed, so it is as good as refused.
      const rejection = catalog.state().modelVersions.get(endpoint.modelVersionId)?.rejection ?? undefined;
      for (const step of steps.next(fleet.state(), rejection)) stream.send(step);
    };
    send();
    const stops = [fleet.onChange(send), catalog.onChange(send)];
    const pulls = this.ports.signals.subscribe('tele.pull.*', (data) => {
      const pull = pullProgress.safeParse(data);
      if (!pull.success || pull.data.endpointId !== endpointId) return;
      const { replicaId, file, completedBytes, totalBytes } = pull.data;
      stream.send({ ...nothing, kind: 'pull', endpoint_id: endpointId, replica_id: replicaId, file, completed_bytes: completedBytes, total_bytes: totalBytes });
    });
    await this.streams.hold(stream, async () => {
      for (const stop of stops) stop();
      await (await pulls).close();
    });
    return ANSWERED;
  }
}

/** What changed at one endpoint since it was looked at last. Replicas that had ended before the first look are history. */
class StartSteps {
  private readonly phases = new Map<string, string>();
  private refusal: string | undefined;

  constructor(private readonly endpointId: string, fleet: FleetState) {
    const living = new Set(replicasOf(fleet, endpointId).map((replica) => replica.replicaId));
    for (const replica of fleet.replicas.values()) if (replica.endpointId === endpointId && !living.has(replica.replicaId)) this.phases.set(replica.replicaId, replica.phase);
  }

  next(fleet: FleetState, rejection: string | undefined): ProgressBody[] {
    const steps: ProgressBody[] = [];
    for (const { replicaId, endpointId, phase, reason } of fleet.replicas.values()) {
      if (endpointId !== this.endpointId || this.phases.get(replicaId) === phase) continue;
      this.phases.set(replicaId, phase);
      steps.push({ ...nothing, kind: 'phase', endpoint_id: endpointId, replica_id: replicaId, phase, reason });
    }
    const refusal = rejection ?? fleet.refusals.get(this.endpointId)?.reason;
    if (refusal !== undefined && refusal !== this.refusal) steps.push({ ...nothing, kind: 'refused', endpoint_id: this.endpointId, reason: refusal });
    this.refusal = refusal;
    return steps;
  }
}
