import { deployEndpoint, listEndpoints, listModelVersions, registerModelVersion, removeTrafficSplit, retireEndpoint, setTrafficSplit, verifyProjections } from '@penstock/contract-commands';
import { answerCommand, causationOf, ok } from '@penstock/feature-shell';
import type { Causation } from '@penstock/kernel';
import { Controller, Inject } from '@nestjs/common';
import { Ctx, MessagePattern, NatsContext, Payload } from '@nestjs/microservices';
import type { CatalogReader } from './catalog-reader.js';
import type { EndpointDesk } from './endpoint-desk.js';
import type { ModelVersionDesk } from './model-version-desk.js';
import type { RegistryPorts } from './registry-ports.js';
import { CATALOG_READER, ENDPOINT_DESK, MODEL_VERSION_DESK, REGISTRY_PORTS, TRAFFIC_DESK } from './tokens.js';
import type { TrafficDesk } from './traffic-desk.js';

const verification = verifyProjections('registry');

@Controller()
export class RegistryController {
  constructor(
    @Inject(REGISTRY_PORTS) private readonly ports: RegistryPorts,
    @Inject(MODEL_VERSION_DESK) private readonly modelVersions: ModelVersionDesk,
    @Inject(ENDPOINT_DESK) private readonly endpoints: EndpointDesk,
    @Inject(TRAFFIC_DESK) private readonly traffic: TrafficDesk,
    @Inject(CATALOG_READER) private readonly reader: CatalogReader,
  ) {}

  @MessagePattern(registerModelVersion.subject)
  register(@Payload() payload: unknown, @Ctx() context: NatsContext) {
    return answerCommand(registerModelVersion, payload, this.ports.logger, (request) => this.modelVersions.register(request, this.causation(context)));
  }

  @MessagePattern(deployEndpoint.subject)
  deploy(@Payload() payload: unknown, @Ctx() context: NatsContext) {
    return answerCommand(deployEndpoint, payload, this.ports.logger, (request) => this.endpoints.deploy(request, this.causation(context)));
  }

  @MessagePattern(retireEndpoint.subject)
  retire(@Payload() payload: unknown, @Ctx() context: NatsContext) {
    return answerCommand(retireEndpoint, payload, this.ports.logger, (request) => this.endpoints.retire(request, this.causation(context)));
  }

  @MessagePattern(setTrafficSplit.subject)
  setTrafficSplit(@Payload() payload: unknown, @Ctx() context: NatsContext) {
    return answerCommand(setTrafficSplit, payload, this.ports.logger, (request) => this.traffic.set(request, this.causation(context)));
  }

  @MessagePattern(removeTrafficSplit.subject)
  removeTrafficSplit(@Payload() payload: unknown, @Ctx() context: NatsContext) {
    return answerCommand(removeTrafficSplit, payload, this.ports.logger, (request) => this.traffic.remove(request, this.causation(context)));
  }

  @MessagePattern(listModelVersions.subject)
  listModelVersions(@Payload() payload: unknown) {
    return answerCommand(listModelVersions, payload, this.ports.logger, async (filter) => ok({ modelVersions: [...(await this.reader.modelVersions(filter))] }));
  }

  @MessagePattern(listEndpoints.subject)
  listEndpoints(@Payload() payload: unknown) {
    return answerCommand(listEndpoints, payload, this.ports.logger, async (filter) => ok({ endpoints: [...(await this.reader.endpoints(filter))] }));
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
