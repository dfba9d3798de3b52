import { getFleet, verifyProjections } from '@penstock/contract-commands';
import type { FleetState } from '@penstock/domain-lifecycle';
import { answerCommand, ok } from '@penstock/feature-shell';
import type { LiveProjection } from '@penstock/kernel';
import { Controller, Inject } from '@nestjs/common';
import { MessagePattern, Payload } from '@nestjs/microservices';
import { viewFleet } from './fleet-views.js';
import type { SchedulerPorts } from './ports.js';
import { FLEET, SCHEDULER_PORTS } from './tokens.js';

const verification = verifyProjections('scheduler');

@Controller()
export class SchedulerController {
  constructor(@Inject(SCHEDULER_PORTS) private readonly ports: SchedulerPorts, @Inject(FLEET) private readonly fleet: LiveProjection<FleetState>) {}

  @MessagePattern(getFleet.subject)
  getFleet(@Payload() payload: unknown) {
    return answerCommand(getFleet, payload, this.ports.logger, async ({ includeEnded }) => ok(await this.readFleet(includeEnded)));
  }

  @MessagePattern(verification.subject)
  verify(@Payload() payload: unknown) {
    return answerCommand(verification, payload, this.ports.logger, async ({ swap }) => {
      const projections = [];
      for (const control of this.ports.projections) projections.push(await (swap ? control.rebuild() : control.verify()));
      return ok({ projections: projections.map((result) => ({ ...result, positions: { ...result.positions } })) });
    });
  }

  /** The database answers; while it cannot, the memory does, which knows fewer ended replicas. */
  private async readFleet(includeEnded: boolean): Promise<ReturnType<typeof viewFleet>> {
    const { queries, logger } = this.ports;
    if (queries === undefined) return viewFleet(this.fleet.state(), includeEnded);
    try {
      const [nodes, replicas] = await Promise.all([queries.nodes(), queries.replicas({ includeEnded })]);
      return { nodes: [...nodes], replicas: [...replicas] };
    } catch (error) {
      logger.warn({ err: error }, 'the database does not answer; the fleet is told from memory');
      return viewFleet(this.fleet.state(), includeEnded);
    }
  }
}
