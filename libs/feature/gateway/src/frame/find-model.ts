import { isTensorEngine } from '@penstock/contract-events';
import type { ApiFault } from '@penstock/contract-http';
import { mayCallModel } from '@penstock/domain-access';
import { adapterModelName, chooseEndpoint, endpointsOfName, splitAdapterName, type CalledEndpoint, type CatalogState, type EndpointState } from '@penstock/domain-catalog';
import type { CallerWords } from '../chat/prompt-facts.js';
import type { GatewayViews } from '../gateway-views.js';
import { RequestFault } from '../http/request-fault.js';
import type { DirectCall } from '../http/route-call.js';

type Asking = Pick<DirectCall, 'principal' | 'requestId'>;

/** Adapters that an error names. */
const ADAPTERS_NAMED_MAX = 20;
const VERSION_SHOWN_MAX = 100;

/**
 * The endpoint that works on a request for a name, which may be shared out over several; `words` say who asks. A request that names a
 * version goes to an endpoint with that one. Throws the same words whether there is no such model or the caller may not use it.
 */
export function findModel(views: GatewayViews, name: string, { principal, requestId }: Asking, words?: CallerWords, version?: string): CalledEndpoint {
  const catalog = views.catalog.state();
  const caller = { ...words, organisationId: principal.organisationId, requestId };
  const endpoint = chooseEndpoint(catalog, name, caller);
  if (endpoint === undefined || !mayCallModel(principal, endpoint.name)) throw new RequestFault(modelNotFound(catalog, name, principal));
  if (version === undefined || versionOf(catalog, endpoint) === version) return endpoint;
  const other = chooseEndpoint(catalog, name, caller, (candidate) => versionOf(catalog, candidate) === version);
  if (other !== undefined) return other;
  const versions = versionsOf(catalog, name, principal.organisationId).map((known) => `'${known}'`);
  throw new RequestFault({ code: 'model_not_found', message: `The model '${name}' has no version '${version.slice(0, VERSION_SHOWN_MAX)}'; its version${versions.length === 1 ? ' is' : 's are'} ${versions.join(', ')}.` });
}

/** The versions that requests for a name may get, in the order of the targets of its split. */
export function versionsOf(catalog: CatalogState, name: string, organisationId: string | null): readonly string[] {
  return [...new Set(endpointsOfName(catalog, name, organisationId).map((endpoint) => versionOf(catalog, endpoint)))];
}

/** What callers know the model version of an endpoint by. */
export function versionOf({ modelVersions }: CatalogState, { modelVersionId }: EndpointState): string {
  return modelVersions.get(modelVersionId)?.version ?? '1';
}

/** A model of text: one of tensors has routes of its own. */
export function findTextModel(views: GatewayViews, name: string, call: Asking, words: CallerWords): CalledEndpoint {
  const endpoint = findModel(views, name, call, words);
  if (isTensorEngine(endpoint.engine)) throw new RequestFault({ code: 'unsupported_operation', message: `The model \`${endpoint.name}\` takes tensors and no text. Call it at POST /v2/models/${encodeURIComponent(endpoint.name)}/infer.`, param: 'model' });
  return endpoint;
}

/** A caller of a model that has adapters is told which ones it may name. */
function modelNotFound(catalog: CatalogState, name: string, principal: Asking['principal']): ApiFault {
  const message = `The model \`${name}\` does not exist or you do not have access to it.`;
  const base = splitAdapterName(name)?.base;
  const adapters = base === undefined ? [] : endpointsOfName(catalog, base, principal.organisationId).flatMap((endpoint) => endpoint.adapters ?? []);
  const known = [...new Set(adapters.map((adapter) => adapterModelName(base ?? '', adapter.name)))].filter((called) => mayCallModel(principal, called)).slice(0, ADAPTERS_NAMED_MAX);
  return { code: 'model_not_found', message: known.length === 0 ? message : `${message} Adapters of \`${base}\` are ${known.map((called) => `\`${called}\``).join(', ')}.` };
}
