import { LIMITED_MODELS_MAX, type AccessLimits, type EventOf, type limitsSetV1, type LimitsSetV1 } from '@penstock/contract-events';
import { accept, refuse, type Decider } from '@penstock/kernel';
import type { AccessState } from './access-projection.js';
import type { Principal } from './authorise.js';

export type LimitsEvent = EventOf<typeof limitsSetV1>;
export type LimitsCommand = { readonly kind: 'set' } & LimitsSetV1;
/** Limits of one subject: by model name, and under {@link ALL_MODELS} for all together. */
export type SubjectLimits = ReadonlyMap<string, LimitsSetV1>;

/** Stands for all models together; no model can have this name. */
export const ALL_MODELS = '*';

/** Sets replace each other; setting the same again changes nothing. */
export const limitsDecider: Decider<SubjectLimits, LimitsCommand, LimitsEvent> = {
  initialState: new Map(),
  decide({ kind: _kind, ...data }, state) {
    const before = state.get(data.model ?? ALL_MODELS);
    if (before === undefined ? areUnset(data.limits) : isSame(before.limits, data.limits)) return accept();
    if (before === undefined && state.size >= LIMITED_MODELS_MAX) return refuse({ code: 'invalid_value', message: `${data.subjectId} has limits for ${LIMITED_MODELS_MAX} models already; take some away first.`, param: 'model' });
    return accept({ type: 'limits.set.v1', data });
  },
  evolve: (state, event) => withLimits(state, event.data),
};

/** The limits of one subject after a set. */
export function withLimits(before: SubjectLimits, set: LimitsSetV1): SubjectLimits {
  const after = new Map(before);
  if (areUnset(set.limits)) after.delete(set.model ?? ALL_MODELS);
  else after.set(set.model ?? ALL_MODELS, set);
  return after;
}

/** A model as limits see it. An adapter is under the limits of its base as well: `llama:sql` under those of `llama`. */
export interface LimitedModel {
  readonly name: string;
  /** The part of the name behind the last colon, where it is an adapter's. */
  readonly adapter?: string | undefined;
}

function namesOf({ name, adapter }: LimitedModel): readonly string[] {
  return adapter === undefined ? [ALL_MODELS, name] : [ALL_MODELS, name.slice(0, -adapter.length - 1), name];
}

/** Every set of limits that a request of the principal to the model is under, the widest subject first; empty for most. */
export function limitsOn(state: AccessState, principal: Principal, model: LimitedModel): readonly LimitsSetV1[] {
  if (state.limits.size === 0) return [];
  const found: LimitsSetV1[] = [];
  for (const subjectId of [principal.organisationId, principal.projectId, principal.keyId]) {
    const subject = state.limits.get(subjectId);
    if (subject === undefined) continue;
    for (const name of namesOf(model)) {
      const limits = subject.get(name);
      if (limits !== undefined) found.push(limits);
    }
  }
  return found;
}

/** Every set of limits of the principal's organisation, project and key, whatever the model. */
export function limitsAround(state: AccessState, principal: Principal): readonly LimitsSetV1[] {
  return [principal.organisationId, principal.projectId, principal.keyId].flatMap((subjectId) => [...(state.limits.get(subjectId)?.values() ?? [])]);
}

/** The smallest context that any of the limits allows, in tokens; null for none. */
export function contextTokensMaxOf(limits: readonly LimitsSetV1[]): number | null {
  return limits.reduce<number | null>((least, { limits: { contextTokensMax } }) => (contextTokensMax === null ? least : Math.min(least ?? contextTokensMax, contextTokensMax)), null);
}

/** The class in the queue: what was set for the narrowest subject wins. */
export function priorityTierOf(limits: readonly LimitsSetV1[]): AccessLimits['priorityTier'] {
  return limits.reduce<AccessLimits['priorityTier']>((tier, { limits: { priorityTier } }) => priorityTier ?? tier, null);
}

const FIELDS = ['requestsPerMinute', 'tokensPerMinute', 'concurrency', 'contextTokensMax', 'priorityTier'] as const;

function areUnset(limits: AccessLimits): boolean {
  return FIELDS.every((field) => limits[field] === null);
}

function isSame(one: AccessLimits, other: AccessLimits): boolean {
  return FIELDS.every((field) => one[field] === other[field]);
}
