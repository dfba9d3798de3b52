import { Inject, Injectable } from '@nestjs/common';
import { announceReclaim, cordonNode, drainNode, uncordonNode } from '@penstock/contract-commands';
import type { nodeOperationRequest, reclaimRequest } from '@penstock/contract-http';
import { isId } from '@penstock/kernel';
import type { z } from 'zod';
import { askService } from '../ask-service.js';
import type { GatewayPorts } from '../gateway-ports.js';
import { RequestFault } from '../http/request-fault.js';
import { onRoute, type RouteCall, type RouteGroup } from '../http/route-call.js';
import { GATEWAY_PORTS } from '../tokens.js';
import { requireOperator } from './require-operator.js';

type Operation = z.output<typeof nodeOperationRequest>;

const PARAMS = { nodeId: 'node_id' };

/** What an operator does with nodes: close, open, empty, and say that they are taken back. */
@Injectable()
export class NodeRoutes implements RouteGroup {
  readonly handlers = [
    onRoute<unknown, Operation>('POST /admin/v1/nodes/{node_id}/cordon', (call) => this.operate(cordonNode, call)),
    onRoute<unknown, Operation>('POST /admin/v1/nodes/{node_id}/uncordon', (call) => this.operate(uncordonNode, call)),
    onRoute<unknown, Operation>('POST /admin/v1/nodes/{node_id}/drain', (call) => this.operate(drainNode, call)),
    onRoute<unknown, z.output<typeof reclaimRequest>>('POST /admin/v1/nodes/{node_id}/reclaim', (call) =>
      askService(this.ports, announceReclaim, { nodeId: nodeIdOf(call), reason: call.body.reason, inSeconds: call.body.in_seconds }, call, { params: PARAMS })),
  ];

  constructor(@Inject(GATEWAY_PORTS) private readonly ports: GatewayPorts) {}

  private operate(command: typeof cordonNode, call: RouteCall<unknown, Operation>): Promise<unknown> {
    return askService(this.ports, command, { nodeId: nodeIdOf(call), reason: call.body.reason }, call, { params: PARAMS });
  }
}

function nodeIdOf(call: Pick<RouteCall, 'principal' | 'params'>): string {
  requireOperator(call.principal);
  const nodeId = call.params['node_id'] ?? '';
  if (!isId(nodeId)) throw new RequestFault({ code: 'not_found', message: 'No such node; list the fleet to see the ids of nodes.', param: 'node_id' });
  return nodeId;
}
