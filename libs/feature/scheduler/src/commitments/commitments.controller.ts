import { adviseDeployment, listReservations, makeReservation, planDeployment, planNodes, releaseReservation } from '@penstock/contract-commands';
import { answerCommand, causationOf, ok } from '@penstock/feature-shell';
import type { Causation } from '@penstock/kernel';
import { Controller, Inject } from '@nestjs/common';
import { Ctx, MessagePattern, NatsContext, Payload } from '@nestjs/microservices';
import type { SchedulerPorts } from '../ports.js';
import { PLAN_DESK, RESERVATION_DESK, SCHEDULER_PORTS } from '../tokens.js';
import type { PlanDesk } from './plan-desk.js';
import type { ReservationDesk } from './reservation-desk.js';

/** Promises, and questions about what would be. */
@Controller()
export class CommitmentsController {
  constructor(
    @Inject(SCHEDULER_PORTS) private readonly ports: SchedulerPorts,
    @Inject(RESERVATION_DESK) private readonly reservations: ReservationDesk,
    @Inject(PLAN_DESK) private readonly plans: PlanDesk,
  ) {}

  @MessagePattern(makeReservation.subject)
  make(@Payload() payload: unknown, @Ctx() context: NatsContext) {
    return answerCommand(makeReservation, payload, this.ports.logger, (request) => this.reservations.make(request, this.causation(context)));
  }

  @MessagePattern(releaseReservation.subject)
  release(@Payload() payload: unknown, @Ctx() context: NatsContext) {
    return answerCommand(releaseReservation, payload, this.ports.logger, (request) => this.reservations.release(request, this.causation(context)));
  }

  @MessagePattern(listReservations.subject)
  list(@Payload() payload: unknown) {
    return answerCommand(listReservations, payload, this.ports.logger, (request) => Promise.resolve(ok(this.reservations.list(request))));
  }

  @MessagePattern(planDeployment.subject)
  planDeployment(@Payload() payload: unknown) {
    return answerCommand(planDeployment, payload, this.ports.logger, (request) => Promise.resolve(this.plans.deployment(request)));
  }

  @MessagePattern(adviseDeployment.subject)
  adviseDeployment(@Payload() payload: unknown) {
    return answerCommand(adviseDeployment, payload, this.ports.logger, (request) => Promise.resolve(this.plans.advice(request)));
  }

  @MessagePattern(planNodes.subject)
  planNodes(@Payload() payload: unknown) {
    return answerCommand(planNodes, payload, this.ports.logger, (request) => Promise.resolve(this.plans.nodes(request)));
  }

  private causation(context: NatsContext): Causation {
    return causationOf(context, this.ports.ids.next('cmd'));
  }
}
