import type { EndpointDeployedV1 } from '@penstock/contract-events';
import type { Refusal } from '@penstock/kernel';
import type { CatalogState, ModelVersionState } from './catalog-state.js';
import { hiddenAdapter } from './adapters.js';
import { isVisibleTo, scopedName } from './scoped-name.js';

export type DeploymentRequest = Omit<EndpointDeployedV1, 'endpointId' | 'engine'>;

export type DeploymentCheck =
  | { readonly kind: 'fits'; readonly modelVersion: ModelVersionState }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

/**
 * Checks a deployment against itself and against the catalogue. That the name is free among the owner's own endpoints is
 * not checked here: the endpoint's aggregate decides that.
 */
export function checkDeployment(request: DeploymentRequest, modelVersion: ModelVersionState | undefined, catalog: CatalogState): DeploymentCheck {
  if (modelVersion === undefined || !isVisibleTo(modelVersion.organisationId, request.organisationId)) {
    return refused('not_found', 'modelVersionId', `There is no model version ${request.modelVersionId}; register it first.`);
  }
  if (modelVersion.status === 'rejected') {
    return refused('invalid_value', 'modelVersionId', `Model version ${modelVersion.modelName} ${modelVersion.version} was rejected: ${modelVersion.rejection ?? 'no reason is known'} Correct the artifact and register it again.`);
  }
  if (modelVersion.organisationId !== null && request.organisationId === null) {
    return refused('invalid_value', 'organisationId', `Model version ${modelVersion.modelVersionId} belongs to one organisation; an endpoint on it must name that organisation.`);
  }
  const { minReplicas, maxReplicas } = request.scaling;
  if (minReplicas > maxReplicas) {
    return refused('invalid_value', 'scaling.minReplicas', `minReplicas ${minReplicas} is more than maxReplicas ${maxReplicas}; lower the one or raise the other.`);
  }
  const contextMax = modelVersion.registered?.contextTokensMax;
  if (contextMax !== undefined && request.serving.contextTokens > contextMax) {
    return refused('invalid_value', 'serving.contextTokens', `The model takes at most ${contextMax} tokens of context, ${request.serving.contextTokens} were asked for.`);
  }
  const shared = catalog.endpointIdByName.get(request.name);
  const isNewName = !catalog.endpointIdByName.has(scopedName(request.name, request.organisationId));
  if (isNewName && shared !== undefined) {
    return refused('already_exists', 'name', `${request.name} is an endpoint of this installation for every organisation already; choose another name.`);
  }
  const hidden = isNewName ? hiddenAdapter(catalog, request.name, request.organisationId) : undefined;
  if (hidden !== undefined) return refused('already_exists', 'name', `${request.name} is an adapter of ${hidden} already; choose another name.`);
  return { kind: 'fits', modelVersion };
}

function refused(code: string, param: string, message: string): DeploymentCheck {
  return { kind: 'refused', refusal: { code, message, param } };
}
