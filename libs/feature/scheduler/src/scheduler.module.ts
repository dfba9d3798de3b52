import { Module, type DynamicModule } from '@nestjs/common';
import type { SchedulerPorts } from './ports.js';
import { SchedulerController } from './scheduler.controller.js';
import type { RunningScheduling } from './run-scheduling.js';
import { FLEET, FLEET_WRITER, SCHEDULER_PORTS } from './tokens.js';

@Module({})
export class SchedulerModule {
  static with(ports: SchedulerPorts, { fleet, writer }: Pick<RunningScheduling, 'fleet' | 'writer'>): DynamicModule {
    return {
      module: SchedulerModule,
      controllers: [SchedulerController],
      providers: [{ provide: SCHEDULER_PORTS, useValue: ports }, { provide: FLEET, useValue: fleet }, { provide: FLEET_WRITER, useValue: writer }],
    };
  }
}
