import { composeScheduler, runService } from '@penstock/infra-composition';

await runService('scheduler', composeScheduler);
