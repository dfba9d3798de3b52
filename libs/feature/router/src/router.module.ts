import { Module, type DynamicModule } from '@nestjs/common';
import type { Logger } from '@penstock/kernel';
import type { AdmissionService } from './admission-service.js';
import { groupController, instanceController } from './router.controller.js';
import { ADMISSION_SERVICE, ROUTER_LOGGER } from './tokens.js';

@Module({})
export class RouterModule {
  static with(instanceId: string, admissions: AdmissionService, logger: Logger): DynamicModule {
    return {
      module: RouterModule,
      controllers: [groupController(), instanceController(instanceId)],
      providers: [
        { provide: ADMISSION_SERVICE, useValue: admissions },
        { provide: ROUTER_LOGGER, useValue: logger },
      ],
    };
  }
}
