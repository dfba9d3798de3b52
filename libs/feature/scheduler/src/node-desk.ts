import type { NodeView } from '@penstock/contract-commands';
import { evolveOperations, nodeDecider, nodeRef, type FleetState, type NodeCommand, type NodeEvent } from '@penstock/domain-lifecycle';
import { ok, refused, type HandlerOutcome } from '@penstock/feature-shell';
import type { Causation, LiveProjection } from '@penstock/kernel';
import { viewNode } from './fleet-views.js';
import type { FleetWriter } from './fleet-writer.js';

/** What operators do with nodes. The reconciler follows: nothing here moves a replica. */
export class NodeDesk {
  constructor(private readonly writer: FleetWriter, private readonly fleet: LiveProjection<FleetState>) {}

  async operate(nodeId: string, command: NodeCommand, causation: Causation): Promise<HandlerOutcome<{ node: NodeView }>> {
    const known = this.fleet.state().nodes.get(nodeId);
    if (known === undefined) return refused({ code: 'not_found', message: `There is no node ${nodeId}; list the fleet to see the nodes.`, param: 'nodeId' });
    const outcome = await this.writer.handle(nodeDecider, nodeRef(nodeId), command, causation);
    if (outcome.kind === 'refused') return refused(outcome.refusal);
    const events = outcome.events as readonly NodeEvent[];
    const node = events.reduce((state, event) => ({ ...state, ...evolveOperations(state, event) }), known);
    return ok({ node: viewNode(node) });
  }
}
