import { batchJobTable } from './batch/batch-job-table.js';
import { fileTable } from './batch/file-table.js';
import { nodeTable } from './fleet/node-table.js';
import { replicaTable } from './fleet/replica-table.js';
import { usageLedgerTable } from './metering/usage-ledger-table.js';
import { endpointTable } from './registry/endpoint-table.js';
import { modelVersionTable } from './registry/model-version-table.js';
import { decisionTable } from './scaling/decision-table.js';

/** Every table that a connection can read and write. */
export const tableEntities = [modelVersionTable, endpointTable, nodeTable, replicaTable, decisionTable, fileTable, batchJobTable, usageLedgerTable] as const;
