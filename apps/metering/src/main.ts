import { composeMetering, runService } from '@penstock/infra-composition';

await runService('metering', composeMetering);
