import { Module, type DynamicModule } from '@nestjs/common';
import type { RegistryPorts } from './registry-ports.js';
import { RegistryController } from './registry.controller.js';
import type { RunningCatalog } from './run-catalog.js';
import { CATALOG_READER, ENDPOINT_DESK, MODEL_VERSION_DESK, REGISTRY_PORTS, TRAFFIC_DESK } from './tokens.js';

@Module({})
export class RegistryModule {
  static with(ports: RegistryPorts, running: RunningCatalog): DynamicModule {
    return {
      module: RegistryModule,
      controllers: [RegistryController],
      providers: [
        { provide: REGISTRY_PORTS, useValue: ports },
        { provide: MODEL_VERSION_DESK, useValue: running.modelVersions },
        { provide: ENDPOINT_DESK, useValue: running.endpoints },
        { provide: TRAFFIC_DESK, useValue: running.traffic },
        { provide: CATALOG_READER, useValue: running.reader },
      ],
    };
  }
}
