import { modelName, type EndpointAdapter } from '@penstock/contract-events';
import type { Refusal } from '@penstock/kernel';
import { findEndpointByName, type CatalogState, type EndpointState, type ModelVersionState } from './catalog-state.js';
import { scopedName } from './scoped-name.js';

/** An endpoint as a request called it: by its own name, or with one of its adapters. `name` is always the caller's word. */
export interface CalledEndpoint extends EndpointState {
  /** The adapter that the request names, as the engine knows it. */
  readonly adapter?: string | undefined;
}

/** The model name of an adapter: `llama:sql` is the adapter `sql` on `llama`. */
export function adapterModelName(endpointName: string, adapter: string): string {
  return `${endpointName}:${adapter}`;
}

/** What stands before and behind the last colon of a name; undefined for a name that is no adapter's. */
export function splitAdapterName(name: string): { readonly base: string; readonly adapter: string } | undefined {
  const colon = name.lastIndexOf(':');
  return colon <= 0 || colon === name.length - 1 ? undefined : { base: name.slice(0, colon), adapter: name.slice(colon + 1) };
}

export function hasAdapter({ adapters }: Pick<EndpointState, 'adapters'>, name: string): boolean {
  return adapters?.some((adapter) => adapter.name === name) === true;
}

/** Adapters that an accelerator holds at once where the endpoint does not say; each takes memory whether it is used or not. */
const ADAPTER_SLOTS_MAX_DEFAULT = 4;

/** Adapters that an engine is started to hold at once: the engine option `max_loras`, else all of the endpoint's up to a few. */
export function adapterSlotsOf(adapters: number, options: EndpointState['engineOptions']): number {
  const given = options['max_loras'];
  return typeof given === 'number' && Number.isInteger(given) && given > 0 ? given : Math.min(adapters, ADAPTER_SLOTS_MAX_DEFAULT);
}

export interface AdapterRequest {
  /** The endpoint's. */
  readonly name: string;
  readonly organisationId: string | null;
  readonly adapters: readonly EndpointAdapter[];
}

/** Why an endpoint on this model version cannot have these adapters; undefined when it can. */
export function adapterProblem({ name, organisationId, adapters }: AdapterRequest, version: Pick<ModelVersionState, 'engine' | 'source'>, catalog: CatalogState): Refusal | undefined {
  if (adapters.length === 0) return undefined;
  const engineProblem = problemOfEngine(version);
  if (engineProblem !== undefined) return refusal(engineProblem);
  const seen = new Set<string>();
  for (const adapter of adapters) {
    const called = adapterModelName(name, adapter.name);
    if (seen.has(adapter.name)) return refusal(`The adapter ${adapter.name} is named twice; give each adapter of an endpoint one name.`);
    seen.add(adapter.name);
    if (!modelName.safeParse(called).success) return refusal(`The name ${called} is longer than a model's name may be; shorten the adapter's.`);
    if (catalog.endpointIdByName.has(called) || catalog.endpointIdByName.has(scopedName(called, organisationId)) || catalog.splitIdByName.has(called) || catalog.splitIdByName.has(scopedName(called, organisationId))) {
      return refusal(`${called} is a model of its own already; give the adapter another name.`, 'already_exists');
    }
    const sourceProblem = problemOfSource(adapter, version);
    if (sourceProblem !== undefined) return refusal(sourceProblem);
  }
  return undefined;
}

/** The adapter that a new endpoint of this name would hide; undefined when it hides none. */
export function hiddenAdapter(catalog: CatalogState, name: string, organisationId: string | null): string | undefined {
  const parts = splitAdapterName(name);
  const base = parts === undefined ? undefined : findEndpointByName(catalog, parts.base, organisationId);
  return parts !== undefined && base !== undefined && hasAdapter(base, parts.adapter) ? base.name : undefined;
}

function problemOfEngine({ engine }: Pick<ModelVersionState, 'engine'>): string | undefined {
  if (engine === 'vllm' || engine === 'engine-sim') return undefined;
  if (engine === 'llama.cpp') return 'llama.cpp tells its adapters apart by their number and a scale, and knows no model by an adapter\'s name. Deploy the model on vllm, or merge the adapter into its weights.';
  return `${engine} serves tensors and has no adapters; leave them out.`;
}

/** Engines that run already have their adapters; vLLM fetches its own from the hub, as it does the model. */
function problemOfSource({ name, source }: EndpointAdapter, { engine, source: model }: Pick<ModelVersionState, 'engine' | 'source'>): string | undefined {
  if (model.kind === 'attached') return source === null ? undefined : `The engine runs already, so nothing is fetched for it: load ${name} there, and name the adapter without an address.`;
  if (engine === 'engine-sim') return source === null || source.kind === 'none' ? undefined : `The simulated engine has no weights: give ${name} as sim:// or without an address.`;
  if (source?.kind === 'hugging-face' && source.files.length === 0 && source.revision === 'main') return undefined;
  return `vLLM loads adapters out of repositories of a hub, at their newest revision: give ${name} as hf://owner/repository.`;
}

function refusal(message: string, code = 'invalid_value'): Refusal {
  return { code, message, param: 'adapters' };
}
