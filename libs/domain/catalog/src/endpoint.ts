import type { EndpointDeployedV1, EventOf, endpointDeployedV1, endpointRetiredV1 } from '@penstock/contract-events';
import { accept, refuse, type Decider } from '@penstock/kernel';
import { canonical } from './canonical.js';

export type EndpointCommand =
  | { readonly kind: 'deploy'; readonly data: EndpointDeployedV1 }
  | { readonly kind: 'retire'; readonly reason: string };

export type EndpointEvent = EventOf<typeof endpointDeployedV1> | EventOf<typeof endpointRetiredV1>;

export type EndpointLifecycle =
  | { readonly status: 'unknown' }
  | { readonly status: 'active' | 'retired'; readonly deployed: EndpointDeployedV1 };

/** An endpoint: deployed once, retired once. The same deployment again changes nothing. */
export const endpointDecider: Decider<EndpointLifecycle, EndpointCommand, EndpointEvent> = {
  initialState: { status: 'unknown' },
  decide(command, state) {
    if (command.kind === 'retire') {
      if (state.status === 'unknown') return refuse({ code: 'endpoint_not_found', message: 'There is no endpoint with this id; list the endpoints to see theirs.', param: 'endpointId' });
      if (state.status === 'retired') return accept();
      return accept({ type: 'endpoint.retired.v1', data: { endpointId: state.deployed.endpointId, reason: command.reason } });
    }
    if (state.status === 'unknown') return accept({ type: 'endpoint.deployed.v1', data: command.data });
    if (state.status === 'retired') return refuse({ code: 'conflict', message: `${command.data.name} was retired meanwhile; send the command again.`, retryAfterMs: 200 });
    const changed = firstDifference(state.deployed, command.data);
    if (changed === undefined) return accept();
    return refuse({
      code: 'already_exists',
      message: `${command.data.name} is deployed already with another ${changed}; retire it first (DELETE /v1/models/${command.data.name}) or choose another name.`,
      param: changed,
    });
  },
  evolve(state, event) {
    switch (event.type) {
      case 'endpoint.deployed.v1':
        return state.status === 'unknown' ? { status: 'active', deployed: event.data } : state;
      case 'endpoint.retired.v1':
        return state.status === 'active' ? { status: 'retired', deployed: state.deployed } : state;
      default:
        return state;
    }
  },
};

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
