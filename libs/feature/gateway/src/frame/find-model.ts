import { isTensorEngine } from '@penstock/contract-events';
import type { ApiFault } from '@penstock/contract-http';
import { mayCallModel } from '@penstock/domain-access';
import { chooseEndpoint, type EndpointState } from '@penstock/domain-catalog';
import type { CallerWords } from '../chat/prompt-facts.js';
import type { GatewayViews } from '../gateway-views.js';
import { RequestFault } from '../http/request-fault.js';
import type { DirectCall } from '../http/route-call.js';

type Asking = Pick<DirectCall, 'principal' | 'requestId'>;

/** The endpoint that works on a request for a name, which may be shared out over several; `words` say who asks. Throws the same words whether there is no such model or the caller may not use it. */
export function findModel(views: GatewayViews, name: string, { principal, requestId }: Asking, words?: CallerWords): EndpointState {
  const endpoint = chooseEndpoint(views.catalog.state(), name, { ...words, organisationId: principal.organisationId, requestId });
  if (endpoint === undefined || !mayCallModel(principal, endpoint.name)) throw new RequestFault(modelNotFound(name));
  return endpoint;
}

/** A model of text: one of tensors has routes of its own. */
export function findTextModel(views: GatewayViews, name: string, call: Asking, words: CallerWords): EndpointState {
  const endpoint = findModel(views, name, call, words);
  if (isTensorEngine(endpoint.engine)) throw new RequestFault({ code: 'unsupported_operation', message: `The model \`${endpoint.name}\` takes tensors and no text. Call it at POST /v2/models/${encodeURIComponent(endpoint.name)}/infer.`, param: 'model' });
  return endpoint;
}

function modelNotFound(name: string): ApiFault {
  return { code: 'model_not_found', message: `The model \`${name}\` does not exist or you do not have access to it.` };
}
