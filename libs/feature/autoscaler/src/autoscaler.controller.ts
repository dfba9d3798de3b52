import { listScalingDecisions, verifyProjections, wakeEndpoint } from '@penstock/contract-commands';
import type { ScalingDecisionFilter, ScalingDecisionView } from '@penstock/domain-scaling';
import { answerCommand, causationOf, ok } from '@penstock/feature-shell';
import { Controller, Inject } from '@nestjs/common';
import { Ctx, MessagePattern, NatsContext, Payload } from '@nestjs/microservices';
import { listDecisions } from './decision-list.js';
import type { AutoscalerPorts } from './ports.js';
import type { RunningAutoscaling } from './run-autoscaling.js';
import { AUTOSCALER_PORTS, AUTOSCALING } from './tokens.js';

const verification = verifyProjections('autoscaler');

@Controller()
export class AutoscalerController {
  constructor(@Inject(AUTOSCALER_PORTS) private readonly ports: AutoscalerPorts, @Inject(AUTOSCALING) private readonly autoscaling: RunningAutoscaling) {}

  @MessagePattern(wakeEndpoint.subject)
  wake(@Payload() payload: unknown, @Ctx() context: NatsContext) {
    return answerCommand(wakeEndpoint, payload, this.ports.logger, ({ endpointId, waiting }) =>
      this.autoscaling.wakes.wake(endpointId, waiting, causationOf(context, this.ports.ids.next('cmd'))));
  }

  @MessagePattern(listScalingDecisions.subject)
  decisions(@Payload() payload: unknown) {
    return answerCommand(listScalingDecisions, payload, this.ports.logger, async (filter) => ok({ decisions: [...(await this.readDecisions(filter))] }));
  }

  @MessagePattern(verification.subject)
  verify(@Payload() payload: unknown) {
    return answerCommand(verification, payload, this.ports.logger, async ({ swap }) => {
      const projections = [];
      for (const control of this.ports.projections) projections.push(await (swap ? control.rebuild() : control.verify()));
      return ok({ projections: projections.map((result) => ({ ...result, positions: { ...result.positions } })) });
    });
  }

  /** The database answers; while it cannot, the memory does with the newest ones. */
  private async readDecisions(filter: ScalingDecisionFilter): Promise<readonly ScalingDecisionView[]> {
    const { queries, logger } = this.ports;
    if (queries === undefined) return listDecisions(this.autoscaling.scaling.state(), filter);
    try {
      return await queries.decisions(filter);
    } catch (error) {
      logger.warn({ err: error }, 'the database does not answer; decisions are told from memory');
      return listDecisions(this.autoscaling.scaling.state(), filter);
    }
  }
}
