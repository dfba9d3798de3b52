import { asCatalogueEvent, type ApiKeyCreatedV1, type OrganisationCreatedV1, type ProjectCreatedV1 } from '@penstock/contract-events';
import type { Projection, RecordedEvent } from '@penstock/kernel';

export interface OrganisationEntry extends OrganisationCreatedV1 {
  readonly createdAtMs: number;
}

export interface ProjectEntry extends ProjectCreatedV1 {
  readonly createdAtMs: number;
}

export interface ApiKeyEntry extends ApiKeyCreatedV1 {
  readonly createdAtMs: number;
  /** Parsed once, since every request of the key compares it; null for a key that does not expire. */
  readonly expiresAtMs: number | null;
  readonly revokedAtMs: number | null;
}

/** Who may call. Keys are found by their HMAC; the key itself is nowhere. */
export interface AccessState {
  readonly organisations: Map<string, OrganisationEntry>;
  readonly projects: Map<string, ProjectEntry>;
  readonly keys: Map<string, ApiKeyEntry>;
  readonly keyIdByHmac: Map<string, string>;
}

interface AccessSnapshot {
  readonly organisations: readonly OrganisationEntry[];
  readonly projects: readonly ProjectEntry[];
  readonly keys: readonly ApiKeyEntry[];
}

export const accessProjection: Projection<AccessState> = {
  name: 'access',
  version: 1,
  streams: ['EV_ACCESS'],
  initialState: () => ({ organisations: new Map(), projects: new Map(), keys: new Map(), keyIdByHmac: new Map() }),
  apply: applyAccessEvent,
  snapshot: (state): AccessSnapshot => ({ organisations: [...state.organisations.values()], projects: [...state.projects.values()], keys: [...state.keys.values()] }),
  restore(snapshot) {
    const { organisations, projects, keys } = snapshot as AccessSnapshot;
    return {
      organisations: new Map(organisations.map((entry) => [entry.organisationId, entry])),
      projects: new Map(projects.map((entry) => [entry.projectId, entry])),
      keys: new Map(keys.map((entry) => [entry.keyId, entry])),
      keyIdByHmac: new Map(keys.map((entry) => [entry.hmac, entry.keyId])),
    };
  },
};

function applyAccessEvent(state: AccessState, recorded: RecordedEvent): AccessState {
  const event = asCatalogueEvent(recorded);
  const atMs = Date.parse(recorded.time);
  switch (event.type) {
    case 'organisation.created.v1':
      state.organisations.set(event.data.organisationId, { ...event.data, createdAtMs: atMs });
      break;
    case 'project.created.v1':
      state.projects.set(event.data.projectId, { ...event.data, createdAtMs: atMs });
      break;
    case 'api-key.created.v1':
      state.keys.set(event.data.keyId, { ...event.data, createdAtMs: atMs, expiresAtMs: event.data.expiresAt === null ? null : Date.parse(event.data.expiresAt), revokedAtMs: null });
      state.keyIdByHmac.set(event.data.hmac, event.data.keyId);
      break;
    case 'api-key.revoked.v1': {
      const key = state.keys.get(event.data.keyId);
      if (key !== undefined) state.keys.set(key.keyId, { ...key, revokedAtMs: atMs });
      break;
    }
    default:
      break;
  }
  return state;
}
