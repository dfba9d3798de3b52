import { Module, type DynamicModule } from '@nestjs/common';
import type { Logger } from '@penstock/kernel';
import type { AdmissionService } from './admission-service.js';
import type { QuotaAuthority } from './quota/quota-authority.js';
import { quotaControllers } from './quota/quota.controller.js';
import { groupController, instanceController } from './router.controller.js';
import { ADMISSION_SERVICE, QUOTA_AUTHORITY, ROUTER_LOGGER } from './tokens.js';

@Module({})
export class RouterModule {
  static with(instanceId: string, admissions: AdmissionService, quotas: QuotaAuthority, logger: Logger): DynamicModule {
    return {
      module: RouterModule,
      controllers: [groupController(), instanceController(instanceId), ...quotaControllers(instanceId)],
      providers: [
        { provide: ADMISSION_SERVICE, useValue: admissions },
        { provide: QUOTA_AUTHORITY, useValue: quotas },
        { provide: ROUTER_LOGGER, useValue: logger },
      ],
    };
  }
}
