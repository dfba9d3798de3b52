import * as contracts from '@penstock/contract-commands';
import { answerCommand, causationOf, ok } from '@penstock/feature-shell';
import type { Causation } from '@penstock/kernel';
import { Controller, Inject } from '@nestjs/common';
import { Ctx, MessagePattern, NatsContext, Payload } from '@nestjs/microservices';
import type { BatchPorts } from './batch-ports.js';
import type { FileDesk } from './file-desk.js';
import type { JobDesk } from './job-desk.js';
import { BATCH_PORTS, FILE_DESK, JOB_DESK } from './tokens.js';

const verification = contracts.verifyProjections('batch');

@Controller()
export class BatchController {
  constructor(@Inject(BATCH_PORTS) private readonly ports: BatchPorts, @Inject(FILE_DESK) private readonly files: FileDesk, @Inject(JOB_DESK) private readonly jobs: JobDesk) {}

  @MessagePattern(contracts.registerFile.subject)
  registerFile(@Payload() payload: unknown, @Ctx() context: NatsContext) {
    return answerCommand(contracts.registerFile, payload, this.ports.logger, (request) => this.files.register(request, this.causation(context)));
  }

  @MessagePattern(contracts.getFile.subject)
  getFile(@Payload() payload: unknown) {
    return answerCommand(contracts.getFile, payload, this.ports.logger, ({ organisationId, fileId }) => this.files.get(organisationId, fileId));
  }

  @MessagePattern(contracts.listFiles.subject)
  listFiles(@Payload() payload: unknown) {
    return answerCommand(contracts.listFiles, payload, this.ports.logger, (request) => this.files.list(request));
  }

  @MessagePattern(contracts.deleteFile.subject)
  deleteFile(@Payload() payload: unknown, @Ctx() context: NatsContext) {
    return answerCommand(contracts.deleteFile, payload, this.ports.logger, ({ organisationId, fileId }) => this.files.delete(organisationId, fileId, this.causation(context)));
  }

  @MessagePattern(contracts.createBatch.subject)
  createBatch(@Payload() payload: unknown, @Ctx() context: NatsContext) {
    return answerCommand(contracts.createBatch, payload, this.ports.logger, (request) => this.jobs.create(request, this.causation(context)));
  }

  @MessagePattern(contracts.getBatch.subject)
  getBatch(@Payload() payload: unknown) {
    return answerCommand(contracts.getBatch, payload, this.ports.logger, ({ organisationId, batchId }) => this.jobs.get(organisationId, batchId));
  }

  @MessagePattern(contracts.listBatches.subject)
  listBatches(@Payload() payload: unknown) {
    return answerCommand(contracts.listBatches, payload, this.ports.logger, (request) => this.jobs.list(request));
  }

  @MessagePattern(contracts.cancelBatch.subject)
  cancelBatch(@Payload() payload: unknown, @Ctx() context: NatsContext) {
    return answerCommand(contracts.cancelBatch, payload, this.ports.logger, ({ organisationId, batchId }) => this.jobs.cancel(organisationId, batchId, this.causation(context)));
  }

  @MessagePattern(verification.subject)
  verify(@Payload() payload: unknown) {
    return answerCommand(verification, payload, this.ports.logger, async ({ swap }) => {
      const projections = [];
      for (const control of this.ports.projections) projections.push(await (swap ? control.rebuild() : control.verify()));
      return ok({ projections: projections.map((result) => ({ ...result, positions: { ...result.positions } })) });
    });
  }

  private causation(context: NatsContext): Causation {
    return causationOf(context, this.ports.ids.next('cmd'));
  }
}
