import { Controller, Inject, type Type } from '@nestjs/common';
import { MessagePattern, Payload } from '@nestjs/microservices';
import { admitRequest, borrowSlots, cancelAdmission, releaseLeases, renewLeases, type CommandContract } from '@penstock/contract-commands';
import { answerCommand, ok } from '@penstock/feature-shell';
import type { Logger } from '@penstock/kernel';
import { AdmissionService } from './admission-service.js';
import { addressedTo } from './instance-address.js';
import { ADMISSION_SERVICE, ROUTER_LOGGER } from './tokens.js';

/** The router's commands for whichever instance of the queue group gets them. */
export function groupController(): Type {
  return commandController((contract) => contract.subject);
}

/** The same commands for this instance alone, for others that take it for the owner. */
export function instanceController(instanceId: string): Type {
  return commandController((contract) => addressedTo(contract, instanceId).subject);
}

/** Each call makes a class of its own, since the subjects are part of its decorators and several instances may run in one process. */
function commandController(subjectOf: (contract: CommandContract) => string): Type {
  @Controller()
  class RouterController {
    constructor(@Inject(ADMISSION_SERVICE) private readonly admissions: AdmissionService, @Inject(ROUTER_LOGGER) private readonly logger: Logger) {}

    @MessagePattern(subjectOf(admitRequest))
    admit(@Payload() payload: unknown) {
      return answerCommand(admitRequest, payload, this.logger, (request) => this.admissions.admit(request));
    }

    /** Comes as a plain message too, whose answer nobody waits for. */
    @MessagePattern(subjectOf(releaseLeases))
    release(@Payload() payload: unknown) {
      return answerCommand(releaseLeases, payload, this.logger, async (request) => ok(await this.admissions.release(request)));
    }

    @MessagePattern(subjectOf(renewLeases))
    renew(@Payload() payload: unknown) {
      return answerCommand(renewLeases, payload, this.logger, async (request) => ok(await this.admissions.renew(request)));
    }

    @MessagePattern(subjectOf(borrowSlots))
    borrow(@Payload() payload: unknown) {
      return answerCommand(borrowSlots, payload, this.logger, async (request) => ok(await this.admissions.borrow(request)));
    }

    @MessagePattern(subjectOf(cancelAdmission))
    cancel(@Payload() payload: unknown) {
      return answerCommand(cancelAdmission, payload, this.logger, async (request) => ok(await this.admissions.cancel(request)));
    }
  }
  return RouterController;
}
