import type { AggregateRef } from '@penstock/kernel';

export function organisationRef(organisationId: string): AggregateRef {
  return { context: 'access', aggregate: 'organisation', id: organisationId };
}

export function projectRef(projectId: string): AggregateRef {
  return { context: 'access', aggregate: 'project', id: projectId };
}

export function apiKeyRef(keyId: string): AggregateRef {
  return { context: 'access', aggregate: 'api-key', id: keyId };
}

/** The organisation that runs the installation. Its admin keys see every organisation. */
export const ROOT_ORGANISATION_ID = 'org_root';

/** Every organisation has one project from the start. Its id follows from the organisation's, so that making it twice makes it once. */
export function defaultProjectId(organisationId: string): string {
  return `proj_${organisationId.replace(/^org_/, '')}`;
}

export function serviceAccountRef(serviceAccountId: string): AggregateRef {
  return { context: 'access', aggregate: 'service-account', id: serviceAccountId };
}

/** The limits of one organisation, project or key: ids are unique across the three. */
export function limitsRef(subjectId: string): AggregateRef {
  return { context: 'access', aggregate: 'limits', id: subjectId };
}

/** What one gateway saw of the use of keys. */
export function keyUsesRef(gatewayId: string): AggregateRef {
  return { context: 'access', aggregate: 'key-uses', id: gatewayId };
}
