import { composeRegistry, runService } from '@penstock/infra-composition';

await runService('registry', composeRegistry);
