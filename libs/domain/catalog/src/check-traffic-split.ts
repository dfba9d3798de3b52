import { isTensorEngine, SPLIT_TARGETS_MAX, type TrafficSplitSetV1 } from '@penstock/contract-events';
import type { Refusal } from '@penstock/kernel';
import type { CatalogState, EndpointState } from './catalog-state.js';
import { isVisibleTo, scopedName } from './scoped-name.js';

/** Splits of one installation. */
export const SPLITS_MAX = 10_000;

export interface TrafficSplitRequest extends Omit<TrafficSplitSetV1, 'splitId' | 'targets'> {
  /** Each by its id or its name. */
  readonly targets: readonly { readonly endpoint: string; readonly weight: number }[];
}

export type TrafficSplitCheck =
  | { readonly kind: 'fits'; readonly targets: TrafficSplitSetV1['targets'] }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

/** Checks a split against the catalogue, and finds its endpoints. */
export function checkTrafficSplit(request: TrafficSplitRequest, catalog: CatalogState): TrafficSplitCheck {
  const { name, organisationId, targets } = request;
  if (targets.length === 0 || targets.length > SPLIT_TARGETS_MAX) return refused('targets', `A split has 1 to ${SPLIT_TARGETS_MAX} targets, and ${targets.length} were given.`);
  if (!targets.some(({ weight }) => weight > 0)) return refused('targets', 'Every weight is 0, so nobody would serve the name: give one target a weight above 0, or remove the split.');
  if (organisationId !== null && catalog.endpointIdByName.has(name) && !catalog.endpointIdByName.has(scopedName(name, organisationId))) {
    return refused('name', `${name} is an endpoint of this installation for every organisation, whose traffic its operator splits; choose another name.`);
  }
  const found: EndpointState[] = [];
  for (const [index, { endpoint: named }] of targets.entries()) {
    const param = `targets[${index}].endpoint`;
    const endpoint = findTarget(catalog, named, organisationId);
    if (endpoint === undefined) return refused(param, `There is no active endpoint ${JSON.stringify(named.slice(0, 200))} that callers of ${name} may use; list the endpoints to see their names.`, 'endpoint_not_found');
    if (found.includes(endpoint)) return refused(param, `${endpoint.name} stands twice among the targets; give it one weight.`);
    const [first] = found;
    if (first !== undefined && isTensorEngine(first.engine) !== isTensorEngine(endpoint.engine)) return refused(param, `${endpoint.name} and ${first.name} do not take the same requests: one takes tensors and the other text.`);
    found.push(endpoint);
  }
  if (!catalog.splitIdByName.has(scopedName(name, organisationId)) && catalog.splits.size >= SPLITS_MAX) {
    return { kind: 'refused', refusal: { code: 'conflict', message: `This installation has ${SPLITS_MAX} traffic splits, which is as many as it may have; remove one first.`, param: 'name' } };
  }
  return { kind: 'fits', targets: found.map(({ endpointId }, index) => ({ endpointId, weight: targets[index]?.weight ?? 0 })) };
}

/** An endpoint that everybody who calls the name may use, too. */
function findTarget(catalog: CatalogState, named: string, organisationId: string | null): EndpointState | undefined {
  const byId = catalog.endpoints.get(named);
  const endpointId = (organisationId === null ? undefined : catalog.endpointIdByName.get(scopedName(named, organisationId))) ?? catalog.endpointIdByName.get(named);
  const endpoint = byId ?? (endpointId === undefined ? undefined : catalog.endpoints.get(endpointId));
  return endpoint?.status === 'active' && isVisibleTo(endpoint.organisationId, organisationId) ? endpoint : undefined;
}

function refused(param: string, message: string, code = 'invalid_value'): TrafficSplitCheck {
  return { kind: 'refused', refusal: { code, message, param } };
}
