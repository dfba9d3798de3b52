import { composeAutoscaler, runService } from '@penstock/infra-composition';

await runService('autoscaler', composeAutoscaler);
