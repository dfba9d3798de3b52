import { retireEndpoint } from '@penstock/contract-commands';
import type { EndpointState } from '@penstock/domain-catalog';
import { askService } from '../ask-service.js';
import type { GatewayPorts } from '../gateway-ports.js';
import type { RouteCall } from '../http/route-call.js';
import { requireOperator } from './require-operator.js';

/** Takes an endpoint out of service. One for everybody is the operator's to retire. */
export async function retireModel(ports: Pick<GatewayPorts, 'commands'>, call: RouteCall, { endpointId, organisationId }: EndpointState): Promise<void> {
  if (organisationId === null) requireOperator(call.principal);
  await askService(ports, retireEndpoint, { endpointId, reason: `retired by ${call.principal.keyId}` }, call);
}
