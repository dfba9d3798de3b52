import { announceReclaim, cordonNode, drainNode, getFleet, uncordonNode, verifyProjections } from '@penstock/contract-commands';
import type { FleetState, NodeCommand } from '@penstock/domain-lifecycle';
import { answerCommand, causationOf, ok } from '@penstock/feature-shell';
import type { Causation, LiveProjection } from '@penstock/kernel';
import { Controller, Inject } from '@nestjs/common';
import { Ctx, MessagePattern, NatsContext, Payload } from '@nestjs/microservices';
import { viewFleet, withGeometries } from './fleet-views.js';
import type { FleetWriter } from './fleet-writer.js';
import { NodeDesk } from './node-desk.js';
import type { SchedulerPorts } from './ports.js';
import { FLEET, FLEET_WRITER, SCHEDULER_PORTS } from './tokens.js';

const verification = verifyProjections('scheduler');
const MS_PER_SECOND = 1_000;

@Controller()
export class SchedulerController {
  private readonly nodes: NodeDesk;

  constructor(@Inject(SCHEDULER_PORTS) private readonly ports: SchedulerPorts, @Inject(FLEET) private readonly fleet: LiveProjection<FleetState>, @Inject(FLEET_WRITER) writer: FleetWriter) {
    this.nodes = new NodeDesk(writer, fleet);
  }

  @MessagePattern(getFleet.subject)
  getFleet(@Payload() payload: unknown) {
    return answerCommand(getFleet, payload, this.ports.logger, async ({ includeEnded }) => ok(await this.readFleet(includeEnded)));
  }

  @MessagePattern(cordonNode.subject)
  cordon(@Payload() payload: unknown, @Ctx() context: NatsContext) {
    return this.operate(cordonNode, payload, context, ({ reason }) => ({ kind: 'cordon', reason }));
  }

  @MessagePattern(uncordonNode.subject)
  uncordon(@Payload() payload: unknown, @Ctx() context: NatsContext) {
    return this.operate(uncordonNode, payload, context, ({ reason }) => ({ kind: 'uncordon', reason }));
  }

  @MessagePattern(drainNode.subject)
  drain(@Payload() payload: unknown, @Ctx() context: NatsContext) {
    return this.operate(drainNode, payload, context, ({ reason }) => ({ kind: 'request-drain', reason }));
  }

  @MessagePattern(announceReclaim.subject)
  reclaim(@Payload() payload: unknown, @Ctx() context: NatsContext) {
    return answerCommand(announceReclaim, payload, this.ports.logger, ({ nodeId, reason, inSeconds }) =>
      this.nodes.operate(nodeId, { kind: 'announce-reclaim', reason, reclaimAt: new Date(this.ports.clock.now() + inSeconds * MS_PER_SECOND).toISOString() }, this.causation(context)));
  }

  @MessagePattern(verification.subject)
  verify(@Payload() payload: unknown) {
    return answerCommand(verification, payload, this.ports.logger, async ({ swap }) => {
      const projections = [];
      for (const control of this.ports.projections) projections.push(await (swap ? control.rebuild() : control.verify()));
      return ok({ projections: projections.map((result) => ({ ...result, positions: { ...result.positions } })) });
    });
  }

  private operate(contract: typeof cordonNode, payload: unknown, context: NatsContext, command: (request: { readonly reason: string }) => NodeCommand) {
    return answerCommand(contract, payload, this.ports.logger, (request) => this.nodes.operate(request.nodeId, command(request), this.causation(context)));
  }

  private causation(context: NatsContext): Causation {
    return causationOf(context, this.ports.ids.next('cmd'));
  }

  /** The database answers; while it cannot, the memory does, which knows fewer ended replicas. */
  private async readFleet(includeEnded: boolean): Promise<ReturnType<typeof viewFleet>> {
    const { queries, logger } = this.ports;
    if (queries === undefined) return viewFleet(this.fleet.state(), includeEnded);
    try {
      const [nodes, replicas] = await Promise.all([queries.nodes(), queries.replicas({ includeEnded })]);
      return { nodes: nodes.map((node) => withGeometries(node, this.fleet.state())), replicas: [...replicas] };
    } catch (error) {
      logger.warn({ err: error }, 'the database does not answer; the fleet is told from memory');
      return viewFleet(this.fleet.state(), includeEnded);
    }
  }
}
