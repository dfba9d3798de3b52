import { composeGateway, runService } from '@penstock/infra-composition';

await runService('gateway', composeGateway);
