import { Inject, Injectable } from '@nestjs/common';
import { mayCallModel } from '@penstock/domain-access';
import { endpointsVisibleTo, type EndpointState } from '@penstock/domain-catalog';
import type { GatewayViews } from '../gateway-views.js';
import { onRoute, type RouteCall, type RouteGroup } from '../http/route-call.js';
import { GATEWAY_VIEWS } from '../tokens.js';
import { findModel } from '../frame/find-model.js';

interface ModelObject {
  readonly id: string;
  readonly object: 'model';
  readonly created: number;
  readonly owned_by: string;
}

/** `GET /v1/models` and one model: what the key may call, out of memory. */
@Injectable()
export class ModelsRoutes implements RouteGroup {
  readonly handlers = [
    onRoute('GET /v1/models', (call) => this.list(call)),
    onRoute('GET /v1/models/{model}', (call) => this.get(call)),
  ];

  constructor(@Inject(GATEWAY_VIEWS) private readonly views: GatewayViews) {}

  private list({ principal }: RouteCall): Promise<unknown> {
    const endpoints = endpointsVisibleTo(this.views.catalog.state(), principal.organisationId).filter((endpoint) => mayCallModel(principal, endpoint.name));
    return Promise.resolve({ object: 'list', data: endpoints.map(toModelObject) });
  }

  private async get(call: RouteCall): Promise<unknown> {
    const name = call.params['*'] ?? '';
    return toModelObject(findModel(this.views, name, call));
  }
}

function toModelObject({ name, organisationId, createdAtMs }: EndpointState): ModelObject {
  return { id: name, object: 'model', created: Math.floor(createdAtMs / 1_000), owned_by: organisationId ?? 'penstock' };
}
