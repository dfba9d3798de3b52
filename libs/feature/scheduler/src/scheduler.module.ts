import type { FleetState } from '@penstock/domain-lifecycle';
import type { LiveProjection } from '@penstock/kernel';
import { Module, type DynamicModule } from '@nestjs/common';
import type { SchedulerPorts } from './ports.js';
import { SchedulerController } from './scheduler.controller.js';
import { CommitmentsController } from './commitments/commitments.controller.js';
import type { PlanDesk } from './commitments/plan-desk.js';
import type { ReservationDesk } from './commitments/reservation-desk.js';
import { FLEET, PLAN_DESK, RESERVATION_DESK, SCHEDULER_PORTS } from './tokens.js';

/** Who answers questions about promises and about what would be. */
export interface SchedulerDesks {
  readonly reservations: ReservationDesk;
  readonly plans: PlanDesk;
}

@Module({})
export class SchedulerModule {
  static with(ports: SchedulerPorts, fleet: LiveProjection<FleetState>, desks: SchedulerDesks): DynamicModule {
    return {
      module: SchedulerModule,
      controllers: [SchedulerController, CommitmentsController],
      providers: [{ provide: SCHEDULER_PORTS, useValue: ports }, { provide: FLEET, useValue: fleet }, { provide: RESERVATION_DESK, useValue: desks.reservations }, { provide: PLAN_DESK, useValue: desks.plans }],
    };
  }
}
