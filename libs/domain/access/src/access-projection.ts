import { asCatalogueEvent, type ApiKeyCreatedV2, type LimitsSetV1, type OrganisationCreatedV1, type ProjectCreatedV1, type ServiceAccountCreatedV1 } from '@penstock/contract-events';
import type { Projection, RecordedEvent } from '@penstock/kernel';
import { ALL_MODELS, withLimits, type SubjectLimits } from './limits.js';

export interface OrganisationEntry extends OrganisationCreatedV1 {
  readonly createdAtMs: number;
  /** Null for one that may do what its keys allow. */
  readonly suspendedAtMs: number | null;
}

export interface ProjectEntry extends ProjectCreatedV1 {
  readonly createdAtMs: number;
}

export interface ServiceAccountEntry extends ServiceAccountCreatedV1 {
  readonly createdAtMs: number;
  readonly disabledAtMs: number | null;
}

export interface ApiKeyEntry extends ApiKeyCreatedV2 {
  readonly createdAtMs: number;
  /** Parsed once, since every request of the key compares it; null for a key that does not expire. A rotation brings it forward. */
  readonly expiresAtMs: number | null;
  readonly revokedAtMs: number | null;
  readonly replacedByKeyId: string | null;
  /** Coarse: gateways note the use of a key seldom. Null for a key that was not used yet. */
  readonly lastUsedAtMs: number | null;
}

/** Who may call, and how much. Keys are found by their HMAC; the key itself is nowhere. */
export interface AccessState {
  readonly organisations: Map<string, OrganisationEntry>;
  readonly projects: Map<string, ProjectEntry>;
  readonly serviceAccounts: Map<string, ServiceAccountEntry>;
  readonly keys: Map<string, ApiKeyEntry>;
  readonly keyIdByHmac: Map<string, string>;
  /** By the id of the organisation, project or key. */
  readonly limits: Map<string, SubjectLimits>;
}

interface AccessSnapshot {
  readonly organisations: readonly OrganisationEntry[];
  readonly projects: readonly ProjectEntry[];
  readonly serviceAccounts: readonly ServiceAccountEntry[];
  readonly keys: readonly ApiKeyEntry[];
  readonly limits: readonly LimitsSetV1[];
}

export const accessProjection: Projection<AccessState> = {
  name: 'access',
  version: 3,
  streams: ['EV_ACCESS'],
  initialState: () => ({ organisations: new Map(), projects: new Map(), serviceAccounts: new Map(), keys: new Map(), keyIdByHmac: new Map(), limits: new Map() }),
  apply: applyAccessEvent,
  snapshot: (state): AccessSnapshot => ({
    organisations: [...state.organisations.values()],
    projects: [...state.projects.values()],
    serviceAccounts: [...state.serviceAccounts.values()],
    keys: [...state.keys.values()],
    limits: [...state.limits.values()].flatMap((subject) => [...subject.values()]),
  }),
  restore(snapshot) {
    const { organisations, projects, serviceAccounts, keys, limits } = snapshot as AccessSnapshot;
    return {
      organisations: new Map(organisations.map((entry) => [entry.organisationId, entry])),
      projects: new Map(projects.map((entry) => [entry.projectId, entry])),
      serviceAccounts: new Map(serviceAccounts.map((entry) => [entry.serviceAccountId, entry])),
      keys: new Map(keys.map((entry) => [entry.keyId, entry])),
      keyIdByHmac: new Map(keys.map((entry) => [entry.hmac, entry.keyId])),
      limits: new Map([...Map.groupBy(limits, (set) => set.subjectId)].map(([subjectId, sets]) => [subjectId, new Map(sets.map((set) => [set.model ?? ALL_MODELS, set]))])),
    };
  },
};

function applyAccessEvent(state: AccessState, recorded: RecordedEvent): AccessState {
  const event = asCatalogueEvent(recorded);
  const atMs = Date.parse(recorded.time);
  switch (event.type) {
    case 'organisation.created.v1':
      state.organisations.set(event.data.organisationId, { ...event.data, createdAtMs: atMs, suspendedAtMs: null });
      break;
    case 'organisation.suspended.v1':
    case 'organisation.resumed.v1': {
      const organisation = state.organisations.get(event.data.organisationId);
      const suspendedAtMs = event.type === 'organisation.suspended.v1' ? atMs : null;
      if (organisation !== undefined) state.organisations.set(organisation.organisationId, { ...organisation, suspendedAtMs });
      break;
    }
    case 'project.created.v1':
      state.projects.set(event.data.projectId, { ...event.data, createdAtMs: atMs });
      break;
    case 'service-account.created.v1':
      state.serviceAccounts.set(event.data.serviceAccountId, { ...event.data, createdAtMs: atMs, disabledAtMs: null });
      break;
    case 'service-account.disabled.v1': {
      const account = state.serviceAccounts.get(event.data.serviceAccountId);
      if (account !== undefined) state.serviceAccounts.set(account.serviceAccountId, { ...account, disabledAtMs: atMs });
      break;
    }
    case 'api-key.created.v2':
      state.keys.set(event.data.keyId, {
        ...event.data, createdAtMs: atMs, expiresAtMs: event.data.expiresAt === null ? null : Date.parse(event.data.expiresAt), revokedAtMs: null, replacedByKeyId: null, lastUsedAtMs: null,
      });
      state.keyIdByHmac.set(event.data.hmac, event.data.keyId);
      break;
    case 'api-key.rotated.v1': {
      const worksUntilMs = Date.parse(event.data.worksUntil);
      changeKey(state, event.data.keyId, (key) => ({ ...key, replacedByKeyId: event.data.replacedByKeyId, expiresAtMs: Math.min(key.expiresAtMs ?? worksUntilMs, worksUntilMs) }));
      break;
    }
    case 'api-key.revoked.v1':
      changeKey(state, event.data.keyId, (key) => ({ ...key, revokedAtMs: atMs }));
      break;
    case 'key-uses.noted.v1':
      for (const { keyId, usedAt } of event.data.uses) changeKey(state, keyId, (key) => ({ ...key, lastUsedAtMs: Math.max(key.lastUsedAtMs ?? 0, Date.parse(usedAt)) }));
      break;
    case 'limits.set.v1': {
      const subject = withLimits(state.limits.get(event.data.subjectId) ?? new Map(), event.data);
      if (subject.size === 0) state.limits.delete(event.data.subjectId);
      else state.limits.set(event.data.subjectId, subject);
      break;
    }
    default:
      break;
  }
  return state;
}

function changeKey(state: AccessState, keyId: string, change: (key: ApiKeyEntry) => ApiKeyEntry): void {
  const key = state.keys.get(keyId);
  if (key !== undefined) state.keys.set(keyId, change(key));
}
