import type { SplitSticky } from '@penstock/contract-events';
import { hasAdapter, splitAdapterName, type CalledEndpoint } from './adapters.js';
import { endpointsOfName, findEndpointByName, findSplit, type CatalogState, type EndpointState, type TrafficSplitState } from './catalog-state.js';

/** Who sends a request, as far as it says so. */
export interface TrafficCaller {
  readonly organisationId: string | null;
  readonly requestId: string;
  readonly session?: string | undefined;
  readonly user?: string | undefined;
}

/**
 * The endpoint that works on one request for a model's name: the one of that name, or the share of a traffic split. The answer is
 * called by the name that the caller used, whichever endpoint it is. An organisation's own names come before those for everybody, and
 * a model of its own before an adapter of the same name. `suits` leaves endpoints out, as if the name did not lead to them.
 */
export function chooseEndpoint(state: CatalogState, name: string, caller: TrafficCaller, suits?: (endpoint: EndpointState) => boolean): CalledEndpoint | undefined {
  const plain = chooseNamed(state, name, caller, suits);
  const parts = plain === undefined ? splitAdapterName(name) : undefined;
  if (parts === undefined) return plain;
  const { base, adapter } = parts;
  const endpoint = chooseNamed(state, base, caller, (candidate) => hasAdapter(candidate, adapter) && (suits === undefined || suits(candidate)));
  return endpoint === undefined ? undefined : { ...endpoint, name, adapter };
}

function chooseNamed(state: CatalogState, name: string, caller: TrafficCaller, suits?: (endpoint: EndpointState) => boolean): EndpointState | undefined {
  const split = state.splits.size === 0 ? undefined : findSplit(state, name, caller.organisationId);
  const chosen = split === undefined ? undefined : pickTarget(state, split, stickyKey(split.sticky, caller), suits);
  if (chosen !== undefined) return chosen.name === name ? chosen : { ...chosen, name };
  if (suits === undefined) return findEndpointByName(state, name, caller.organisationId);
  return endpointsOfName(state, name, caller.organisationId).find(suits);
}

function stickyKey(sticky: SplitSticky, { organisationId, requestId, session, user }: TrafficCaller): string {
  switch (sticky) {
    case 'session':
      return `${organisationId} ${session ?? user ?? requestId}`;
    case 'user':
      return `${organisationId} ${user ?? session ?? requestId}`;
    case 'organisation':
      return organisationId ?? requestId;
    case 'request':
      return requestId;
  }
}

/**
 * Weighted rendezvous hashing (Schindelhauer and Schomaker, 2005): each target draws -ln(u) / weight from a hash of key and target,
 * and the smallest draw wins. Keys spread as the weights say, a key stays where it is, and a changed weight moves only the keys
 * that its target gains or loses. Targets that were retired get nothing. Undefined when none is left.
 */
function pickTarget(state: CatalogState, { splitId, targets }: TrafficSplitState, key: string, suits?: (endpoint: EndpointState) => boolean): EndpointState | undefined {
  let best: EndpointState | undefined;
  let bestDraw = Infinity;
  for (const { endpointId, weight } of targets) {
    const endpoint = weight === 0 ? undefined : state.endpoints.get(endpointId);
    if (endpoint === undefined || endpoint.status !== 'active' || suits?.(endpoint) === false) continue;
    const draw = -Math.log(uniform(`${splitId} ${endpointId} ${key}`)) / weight;
    if (draw < bestDraw) {
      best = endpoint;
      bestDraw = draw;
    }
  }
  return best;
}

/** Above 0 and below 1, from two FNV-1a hashes with the finaliser of MurmurHash3. */
function uniform(text: string): number {
  let [high, low] = [0x811c9dc5, 0x9e3779b1];
  for (let index = 0; index < text.length; index += 1) {
    high = Math.imul(high ^ text.charCodeAt(index), 0x01000193);
    low = Math.imul(low ^ text.charCodeAt(index), 0x85ebca6b);
  }
  return (finalise(high) * 2 ** 20 + (finalise(low) >>> 12) + 0.5) / 2 ** 52;
}

function finalise(hash: number): number {
  let value = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}
