import { Module, type DynamicModule } from '@nestjs/common';
import type { SchedulerPorts } from './ports.js';
import { SchedulerController } from './scheduler.controller.js';
import { CommitmentsController } from './commitments/commitments.controller.js';
import type { RunningScheduling } from './run-scheduling.js';
import { FLEET, FLEET_WRITER, PLAN_DESK, RESERVATION_DESK, SCHEDULER_PORTS } from './tokens.js';

@Module({})
export class SchedulerModule {
  static with(ports: SchedulerPorts, { fleet, writer, desks }: Pick<RunningScheduling, 'fleet' | 'writer' | 'desks'>): DynamicModule {
    return {
      module: SchedulerModule,
      controllers: [SchedulerController, CommitmentsController],
      providers: [{ provide: SCHEDULER_PORTS, useValue: ports }, { provide: FLEET, useValue: fleet }, { provide: FLEET_WRITER, useValue: writer }, { provide: RESERVATION_DESK, useValue: desks.reservations }, { provide: PLAN_DESK, useValue: desks.plans }],
    };
  }
}
