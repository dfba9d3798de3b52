import type { EndpointAdapter, EndpointDeployedV1, EventOf, PlacementRules, endpointAdaptersSetV1, endpointDeployedV1, endpointPlacementSetV1, endpointRetiredV1 } from '@penstock/contract-events';
import { accept, refuse, type Decider } from '@penstock/kernel';
import { canonical } from './canonical.js';

export type EndpointCommand =
  /** `rules` that are null or left out put its replicas anywhere; they and `adapters` may change later, which the rest may not. Null leaves what is. */
  | { readonly kind: 'deploy'; readonly data: EndpointDeployedV1; readonly rules?: PlacementRules | null | undefined; readonly adapters?: readonly EndpointAdapter[] | null | undefined }
  | { readonly kind: 'retire'; readonly reason: string };

export type EndpointEvent = EventOf<typeof endpointDeployedV1> | EventOf<typeof endpointPlacementSetV1> | EventOf<typeof endpointAdaptersSetV1> | EventOf<typeof endpointRetiredV1>;

export type EndpointLifecycle =
  | { readonly status: 'unknown' }
  | { readonly status: 'active' | 'retired'; readonly deployed: EndpointDeployedV1; readonly rules: PlacementRules | null; readonly adapters: readonly EndpointAdapter[] };

/** An endpoint: deployed once, retired once. The same deployment again changes nothing. */
export const endpointDecider: Decider<EndpointLifecycle, EndpointCommand, EndpointEvent> = {
  initialState: { status: 'unknown' },
  decide(command, state) {
    if (command.kind === 'retire') {
      if (state.status === 'unknown') return refuse({ code: 'endpoint_not_found', message: 'There is no endpoint with this id; list the endpoints to see theirs.', param: 'endpointId' });
      if (state.status === 'retired') return accept();
      return accept({ type: 'endpoint.retired.v1', data: { endpointId: state.deployed.endpointId, reason: command.reason } });
    }
    if (state.status === 'unknown') return accept({ type: 'endpoint.deployed.v1', data: command.data }, ...settings(command, { rules: null, adapters: [] }));
    if (state.status === 'retired') return refuse({ code: 'conflict', message: `${command.data.name} was retired meanwhile; send the command again.`, retryAfterMs: 200 });
    const changed = firstDifference(state.deployed, command.data);
    if (changed === undefined) return accept(...settings(command, state));
    return refuse({
      code: 'already_exists',
      message: `${command.data.name} is deployed already with another ${changed}; retire it first (DELETE /v1/models/${command.data.name}) or choose another name.`,
      param: changed,
    });
  },
  evolve(state, event) {
    switch (event.type) {
      case 'endpoint.deployed.v1':
        return state.status === 'unknown' ? { status: 'active', deployed: event.data, rules: null, adapters: [] } : state;
      case 'endpoint.placement-set.v1':
        return state.status === 'active' ? { ...state, rules: event.data.rules } : state;
      case 'endpoint.adapters-set.v1':
        return state.status === 'active' ? { ...state, adapters: event.data.adapters } : state;
      case 'endpoint.retired.v1':
        return state.status === 'active' ? { ...state, status: 'retired' } : state;
      default:
        return state;
    }
  },
};

/** What a deployment says that may change later, as far as it is new. */
function settings({ data: { endpointId }, rules = null, adapters = null }: Extract<EndpointCommand, { kind: 'deploy' }>, known: { readonly rules: PlacementRules | null; readonly adapters: readonly EndpointAdapter[] }): readonly EndpointEvent[] {
  const events: EndpointEvent[] = [];
  if (rules !== null && canonical(rules) !== canonical(known.rules)) events.push({ type: 'endpoint.placement-set.v1', data: { endpointId, rules } });
  if (adapters !== null && canonical(adapters) !== canonical(known.adapters)) events.push({ type: 'endpoint.adapters-set.v1', data: { endpointId, adapters: [...adapters] } });
  return events;
}

/** Path of the first setting that differs, such as `scaling.maxReplicas`. */
function firstDifference(one: unknown, other: unknown, path = ''): string | undefined {
  if (canonical(one) === canonical(other)) return undefined;
  if (!isObject(one) || !isObject(other)) return path;
  for (const key of new Set([...Object.keys(one), ...Object.keys(other)])) {
    const found = firstDifference(one[key] ?? null, other[key] ?? null, path === '' ? key : `${path}.${key}`);
    if (found !== undefined) return found;
  }
  return path === '' ? undefined : path;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}
