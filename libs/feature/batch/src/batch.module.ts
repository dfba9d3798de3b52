import { Module, type DynamicModule } from '@nestjs/common';
import { BatchController } from './batch.controller.js';
import type { BatchPorts } from './batch-ports.js';
import type { FileDesk } from './file-desk.js';
import type { JobDesk } from './job-desk.js';
import { BATCH_PORTS, FILE_DESK, JOB_DESK } from './tokens.js';

@Module({})
export class BatchModule {
  static with(ports: BatchPorts, files: FileDesk, jobs: JobDesk): DynamicModule {
    return {
      module: BatchModule,
      controllers: [BatchController],
      providers: [{ provide: BATCH_PORTS, useValue: ports }, { provide: FILE_DESK, useValue: files }, { provide: JOB_DESK, useValue: jobs }],
    };
  }
}
