import { composeRouter, runService } from '@penstock/infra-composition';

await runService('router', composeRouter);
