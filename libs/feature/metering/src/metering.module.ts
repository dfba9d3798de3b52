import { Module, type DynamicModule } from '@nestjs/common';
import type { MeteringPorts } from './metering-ports.js';
import { MeteringController } from './metering.controller.js';
import { METERING_PORTS, USAGE_BATCHER } from './tokens.js';
import type { UsageBatcher } from './usage-batcher.js';
import { UsageConsumer } from './usage.consumer.js';

@Module({})
export class MeteringModule {
  static with(ports: MeteringPorts, batcher: UsageBatcher): DynamicModule {
    return {
      module: MeteringModule,
      controllers: [MeteringController, UsageConsumer],
      providers: [{ provide: METERING_PORTS, useValue: ports }, { provide: USAGE_BATCHER, useValue: batcher }],
    };
  }
}
