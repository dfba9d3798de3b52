import type { LatencyClass } from '@penstock/contract-events';
import { findEndpointByName, type CatalogState, type EndpointState, type ModelVersionState } from '@penstock/domain-catalog';
import type { FleetState } from '@penstock/domain-lifecycle';
import { CLASS_OBJECTIVES, factsOf, knownModel, profilesFor, type FleetHardware, type LatencyObjective, type ModelFacts, type ProfileAnswer, type RequestShape } from '@penstock/domain-placement';

/** What is known of a model that is deployed, registered, or only well known. */
export interface ModelKnowledge {
  /** Profiles that were measured belong to this; the name of a model that is only well known. */
  readonly modelVersionId: string;
  readonly name: string;
  /** null where files and catalogue do not say enough for an estimate. */
  readonly model: ModelFacts | null;
  /** At 16 bits; 0 without a cache, and where nothing is known. */
  readonly kvBytesPerToken: number;
  /** Precision of the weights as they are registered. */
  readonly precision: string;
  /** What an estimate lacks. */
  readonly missing: readonly string[];
  /** Set where the name is an endpoint's. */
  readonly endpoint: EndpointState | null;
}

/** Takes the name of an endpoint, then of a registered model or its version's id, then of a well-known model. */
export function findModel(catalog: CatalogState, name: string, organisationId: string | null): ModelKnowledge | undefined {
  const endpoint = findEndpointByName(catalog, name, organisationId) ?? activeEndpoint(catalog, name);
  if (endpoint !== undefined) return ofVersion(catalog.modelVersions.get(endpoint.modelVersionId), endpoint, endpoint.name);
  const version = catalog.modelVersions.get(name) ?? [...catalog.modelVersions.values()].findLast(({ modelName, organisationId: owner }) => modelName === name && (owner === null || owner === organisationId));
  if (version !== undefined) return ofVersion(version, null, version.modelName);
  const known = knownModel(name);
  return known === undefined ? undefined : { modelVersionId: known.id, name: known.id, model: known, kvBytesPerToken: known.kvBytesPerToken, precision: Object.keys(known.weightBytes)[0] ?? 'bf16', missing: [], endpoint: null };
}

function activeEndpoint(catalog: CatalogState, endpointId: string): EndpointState | undefined {
  const endpoint = catalog.endpoints.get(endpointId);
  return endpoint?.status === 'active' ? endpoint : undefined;
}

function ofVersion(version: ModelVersionState | undefined, endpoint: EndpointState | null, name: string): ModelKnowledge {
  const common = { modelVersionId: version?.modelVersionId ?? endpoint?.modelVersionId ?? name, name, endpoint };
  const registered = version?.registered ?? null;
  if (registered === null) return { ...common, model: null, kvBytesPerToken: 0, precision: 'as registered', missing: [version?.status === 'rejected' ? 'its model version was rejected' : 'its model version is not read yet'] };
  const facts = factsOf(version?.modelName ?? name, registered);
  return facts.kind === 'known'
    ? { ...common, model: facts.facts, kvBytesPerToken: facts.facts.kvBytesPerToken, precision: facts.precision, missing: [] }
    : { ...common, model: null, kvBytesPerToken: registered.memory.kvBytesPerToken, precision: registered.precision?.toLowerCase() ?? 'as registered', missing: facts.missing };
}

/** Profiles of the model on the hardware: measured ones of the fleet in the place of estimates. */
export function profilesOf(knowledge: ModelKnowledge, fleet: FleetState, precisions: readonly string[], hardware: readonly FleetHardware[], shape: RequestShape): ProfileAnswer {
  const measured = [...fleet.profiles.values()].filter(({ modelVersionId }) => modelVersionId === knowledge.modelVersionId);
  return profilesFor({ modelVersionId: knowledge.modelVersionId, model: knowledge.model, precisions, hardware, shape, measured });
}

/** The objective of the class, but for what was said otherwise. */
export function agreedObjective(latencyClass: LatencyClass, ttftMs: number | null, itlMs: number | null): LatencyObjective {
  const byClass = CLASS_OBJECTIVES[latencyClass];
  return { ttftMs: ttftMs ?? byClass.ttftMs, itlMs: itlMs ?? byClass.itlMs };
}
