import { Inject, Injectable } from '@nestjs/common';
import { mayCallModel } from '@penstock/domain-access';
import { adapterModelName, endpointsOfName, endpointsVisibleTo, findSplit, splitAdapterName, type CalledEndpoint } from '@penstock/domain-catalog';
import { retireModel } from '../admin/retire-model.js';
import type { GatewayPorts } from '../gateway-ports.js';
import type { GatewayViews } from '../gateway-views.js';
import { RequestFault } from '../http/request-fault.js';
import { onRoute, type RouteCall, type RouteGroup } from '../http/route-call.js';
import { GATEWAY_PORTS, GATEWAY_VIEWS } from '../tokens.js';
import { findModel } from '../frame/find-model.js';

interface ModelObject {
  readonly id: string;
  readonly object: 'model';
  readonly created: number;
  readonly owned_by: string;
  readonly parent?: string;
}

/** `GET /v1/models` and one model: what the key may call, out of memory; and the end of a model. */
@Injectable()
export class ModelsRoutes implements RouteGroup {
  readonly handlers = [
    onRoute('GET /v1/models', (call) => this.list(call)),
    onRoute('GET /v1/models/{model}', (call) => this.get(call)),
    onRoute('DELETE /v1/models/{model}', (call) => this.delete(call)),
  ];

  constructor(@Inject(GATEWAY_PORTS) private readonly ports: GatewayPorts, @Inject(GATEWAY_VIEWS) private readonly views: GatewayViews) {}

  private list({ principal }: RouteCall): Promise<unknown> {
    const catalog = this.views.catalog.state();
    const models = endpointsVisibleTo(catalog, principal.organisationId).flatMap((endpoint): CalledEndpoint[] => {
      const adapters = new Set(endpointsOfName(catalog, endpoint.name, principal.organisationId).flatMap((one) => (one.adapters ?? []).map(({ name }) => name)));
      return [endpoint, ...[...adapters].map((adapter) => ({ ...endpoint, name: adapterModelName(endpoint.name, adapter), adapter }))];
    });
    return Promise.resolve({ object: 'list', data: models.filter(({ name }) => mayCallModel(principal, name)).map(toModelObject) });
  }

  private async get(call: RouteCall): Promise<unknown> {
    const name = call.params['*'] ?? '';
    return toModelObject(findModel(this.views, name, call));
  }

  /** The model's endpoint goes; what was registered stays, and can be deployed again. */
  private async delete(call: RouteCall): Promise<unknown> {
    const name = call.params['*'] ?? '';
    const endpoint = findModel(this.views, name, call);
    if (endpoint.adapter !== undefined) throw new RequestFault({ code: 'unsupported_operation', message: `The model \`${name}\` is an adapter and goes with its base model. Deploy the base model without it.`, param: 'model' });
    const split = findSplit(this.views.catalog.state(), name, call.principal.organisationId);
    if (split !== undefined) throw new RequestFault({ code: 'unsupported_operation', message: `Several endpoints share the name \`${name}\`. Remove the split at DELETE /admin/v1/traffic-splits/${split.splitId}, or delete the models behind it.`, param: 'model' });
    await retireModel(this.ports, call, endpoint);
    return { id: name, object: 'model', deleted: true };
  }
}

/** An adapter names its parent, as engines list it. */
function toModelObject({ name, organisationId, createdAtMs, adapter }: CalledEndpoint): ModelObject {
  const parent = adapter === undefined ? undefined : splitAdapterName(name)?.base;
  return { id: name, object: 'model', created: Math.floor(createdAtMs / 1_000), owned_by: organisationId ?? 'penstock', ...(parent === undefined ? {} : { parent }) };
}
