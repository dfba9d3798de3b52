import { isTensorEngine } from '@penstock/contract-events';
import type { ApiFault } from '@penstock/contract-http';
import { mayCallModel, type Principal } from '@penstock/domain-access';
import { findEndpointByName, type EndpointState } from '@penstock/domain-catalog';
import type { GatewayViews } from '../gateway-views.js';
import { RequestFault } from '../http/request-fault.js';

/** The endpoint that a caller means by a name. Throws the same words whether there is no such model or the caller may not use it. */
export function findModel(views: GatewayViews, name: string, principal: Principal): EndpointState {
  const endpoint = findEndpointByName(views.catalog.state(), name, principal.organisationId);
  if (endpoint === undefined || !mayCallModel(principal, endpoint.name)) throw new RequestFault(modelNotFound(name));
  return endpoint;
}

/** A model of text: one of tensors has routes of its own. */
export function findTextModel(views: GatewayViews, name: string, principal: Principal): EndpointState {
  const endpoint = findModel(views, name, principal);
  if (isTensorEngine(endpoint.engine)) throw new RequestFault({ code: 'unsupported_operation', message: `The model \`${endpoint.name}\` takes tensors and no text. Call it at POST /v2/models/${encodeURIComponent(endpoint.name)}/infer.`, param: 'model' });
  return endpoint;
}

function modelNotFound(name: string): ApiFault {
  return { code: 'model_not_found', message: `The model \`${name}\` does not exist or you do not have access to it.` };
}
