import { Module, type DynamicModule } from '@nestjs/common';
import { AutoscalerController } from './autoscaler.controller.js';
import type { AutoscalerPorts } from './ports.js';
import type { RunningAutoscaling } from './run-autoscaling.js';
import { AUTOSCALER_PORTS, AUTOSCALING } from './tokens.js';

@Module({})
export class AutoscalerModule {
  static with(ports: AutoscalerPorts, autoscaling: RunningAutoscaling): DynamicModule {
    return {
      module: AutoscalerModule,
      controllers: [AutoscalerController],
      providers: [{ provide: AUTOSCALER_PORTS, useValue: ports }, { provide: AUTOSCALING, useValue: autoscaling }],
    };
  }
}
