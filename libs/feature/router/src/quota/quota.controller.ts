import { Controller, Inject, type Type } from '@nestjs/common';
import { MessagePattern, Payload } from '@nestjs/microservices';
import { syncQuota } from '@penstock/contract-commands';
import { answerCommand } from '@penstock/feature-shell';
import type { Logger } from '@penstock/kernel';
import { addressedTo } from '../instance-address.js';
import { QUOTA_AUTHORITY, ROUTER_LOGGER } from '../tokens.js';
import type { QuotaAuthority } from './quota-authority.js';

/** The quota command for whichever router gets it, and for this one alone. */
export function quotaControllers(instanceId: string): readonly Type[] {
  return [quotaController(syncQuota.subject), quotaController(addressedTo(syncQuota, instanceId).subject)];
}

function quotaController(subject: string): Type {
  @Controller()
  class QuotaController {
    constructor(@Inject(QUOTA_AUTHORITY) private readonly authority: QuotaAuthority, @Inject(ROUTER_LOGGER) private readonly logger: Logger) {}

    @MessagePattern(subject)
    sync(@Payload() payload: unknown) {
      return answerCommand(syncQuota, payload, this.logger, (request) => this.authority.sync(request));
    }
  }
  return QuotaController;
}
