import type { FleetState } from '@penstock/domain-lifecycle';
import type { LiveProjection } from '@penstock/kernel';
import { Module, type DynamicModule } from '@nestjs/common';
import type { SchedulerPorts } from './ports.js';
import { SchedulerController } from './scheduler.controller.js';
import { FLEET, SCHEDULER_PORTS } from './tokens.js';

@Module({})
export class SchedulerModule {
  static with(ports: SchedulerPorts, fleet: LiveProjection<FleetState>): DynamicModule {
    return {
      module: SchedulerModule,
      controllers: [SchedulerController],
      providers: [{ provide: SCHEDULER_PORTS, useValue: ports }, { provide: FLEET, useValue: fleet }],
    };
  }
}
