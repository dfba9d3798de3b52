import { composeAgent, runService } from '@penstock/infra-composition';

await runService('agent', composeAgent);
