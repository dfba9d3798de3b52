import { composeBatch, runService } from '@penstock/infra-composition';

await runService('batch', composeBatch);
