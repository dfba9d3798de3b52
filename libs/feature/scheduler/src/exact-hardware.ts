import type { EndpointState } from '@penstock/domain-catalog';
import type { FleetState } from '@penstock/domain-lifecycle';

/** Whether the same request is to give the same bits at this endpoint. */
export const isExact = (endpoint: EndpointState | null): boolean => endpoint?.rules?.isExact === true;

/**
 * The type of accelerator that replicas of the endpoint have to have, as nodes report it; null for any. One that is to give the same
 * bits stays on the type that its first replica answered on, as long as the fleet remembers that one.
 */
export function requiredType(endpoint: EndpointState, fleet: FleetState): string | null {
  const { acceleratorType } = endpoint.hardware;
  if (acceleratorType !== null || !isExact(endpoint)) return acceleratorType;
  for (const { endpointId, readyAtMs, nodeId, acceleratorIds } of fleet.replicas.values()) {
    if (endpointId !== endpoint.endpointId || readyAtMs === null) continue;
    const type = fleet.nodes.get(nodeId)?.accelerators.find(({ acceleratorId }) => acceleratorId === acceleratorIds[0])?.type;
    if (type !== undefined) return type;
  }
  return null;
}
