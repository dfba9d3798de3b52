/**
 * A name inside the set of things that one organisation owns, or that belong to everybody (`organisationId` null).
 * `@` stands in neither names nor ids, so two different pairs never give the same text.
 */
export function scopedName(name: string, organisationId: string | null): string {
  return organisationId === null ? name : `${name}@${organisationId}`;
}

/**
 * The text an endpoint's id is derived from. A name that is deployed again after it was retired is the next generation:
 * a new endpoint, so that replicas of the old one are never taken for its own. Two deploys of one name at the same time meet
 * on the same generation, hence on the same aggregate, where the expected version lets one of them win.
 */
export function endpointKey(name: string, organisationId: string | null, generation: number): string {
  return `endpoint ${scopedName(name, organisationId)} ${generation}`;
}

/** The text a model version's id is derived from: one name and version is one aggregate, so it cannot be registered twice. */
export function modelVersionKey(modelName: string, version: string, organisationId: string | null): string {
  return `model-version ${scopedName(modelName, organisationId)} ${version}`;
}

/** The text a traffic split's id is derived from: one name has one split. */
export function trafficSplitKey(name: string, organisationId: string | null): string {
  return `traffic-split ${scopedName(name, organisationId)}`;
}

/** True when `organisationId` may see what belongs to `ownerId`; what belongs to nobody is for everybody. */
export function isVisibleTo(ownerId: string | null, organisationId: string | null): boolean {
  return ownerId === null || ownerId === organisationId;
}
