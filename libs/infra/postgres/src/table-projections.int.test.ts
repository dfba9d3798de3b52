import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { batchObject, endpointView, fileObject, listScalingDecisions, modelVersionView, nodeView, replicaView } from '@penstock/contract-commands';
import { contractOf, streamOf, usageRecordedV1, type CatalogueEvent } from '@penstock/contract-events';
import { startTestServers } from '@penstock/infra-runtimes';
import { silentLogger } from '@penstock/kernel';
import { MemoryEventLog } from '@penstock/testing-kit';
import { batchTableProjection } from './batch/batch-table-projection.js';
import { PostgresBatchQueries } from './batch/postgres-batch-queries.js';
import { connectPostgres, type PostgresConnection } from './connection/connect-postgres.js';
import { fleetTableProjection } from './fleet/fleet-table-projection.js';
import { PostgresFleetQueries } from './fleet/postgres-fleet-queries.js';
import { meteringTableProjection } from './metering/metering-table-projection.js';
import { PostgresUsageLedgerQueries } from './metering/postgres-usage-ledger-queries.js';
import { PostgresProjector } from './projection/postgres-projector.js';
import type { TableProjection } from './projection/table-projection.js';
import { PostgresCatalogQueries } from './registry/postgres-catalog-queries.js';
import { registryTableProjection } from './registry/registry-projection.js';
import { PostgresScalingQueries } from './scaling/postgres-scaling-queries.js';
import { scalingTableProjection } from './scaling/scaling-table-projection.js';

const WAIT_MS = 30_000;
const NOW_MS = Date.UTC(2_026, 10, 29, 12);

let servers: Awaited<ReturnType<typeof startTestServers<'postgres'>>>;
let connection: PostgresConnection;
let commands = 0;
const projectors: PostgresProjector[] = [];
const log = new MemoryEventLog();

beforeAll(async () => {
  servers = await startTestServers(['postgres']);
  connection = await connectPostgres(servers.databaseUrl, { logger: silentLogger });
}, 300_000);

afterAll(async () => {
  await Promise.all(projectors.map((projector) => projector.close()));
  await connection?.close();
  await servers?.close();
});

/** Appends the published example of a type with some fields changed, a second after the event before. */
async function tell<Type extends CatalogueEvent['type']>(type: Type, id: string, change: Partial<Extract<CatalogueEvent, { readonly type: Type }>['data']> = {}): Promise<void> {
  const contract = contractOf(type);
  if (contract === undefined) throw new Error(`no contract for ${type}`);
  commands += 1;
  await log.append({
    ref: { context: contract.context, aggregate: contract.context === 'usage' ? 'org_01' : contract.aggregate, id }, events: [{ type, data: { ...(contract.example as object), ...change } }],
    expected: 'any', commandId: `cmd_${commands}`, source: 'test', nowMs: NOW_MS + commands * 1_000, correlationId: 'c', causationId: 'c',
  });
}

async function project(projection: TableProjection): Promise<PostgresProjector> {
  const projector = PostgresProjector.start({ connection, log, projection, logger: silentLogger });
  projectors.push(projector);
  const [stream] = projection.streams;
  if (stream !== undefined) await projector.waitFor(stream, log.all(stream).length, WAIT_MS);
  expect(await projector.verify()).toMatchObject({ identical: true, events: log.all(stream ?? streamOf('registry')).length });
  return projector;
}

test('the catalogue', async () => {
  await tell('model-version.submitted.v1', 'mv_01');
  await tell('model-version.registered.v1', 'mv_01');
  await tell('model-version.submitted.v1', 'mv_02', { modelVersionId: 'mv_02', modelName: 'other' });
  await tell('model-version.rejected.v1', 'mv_02', { modelVersionId: 'mv_02' });
  await tell('endpoint.deployed.v1', 'ep_01');
  await tell('endpoint.deployed.v1', 'ep_02', { endpointId: 'ep_02', name: 'second' });
  await tell('endpoint.retired.v1', 'ep_01');
  await project(registryTableProjection);
  const queries = new PostgresCatalogQueries(connection);
  const versions = await queries.modelVersions({ limit: 10 });
  expect(versions.map((view) => [view.modelVersionId, view.status])).toEqual([['mv_02', 'rejected'], ['mv_01', 'registered']]);
  for (const view of versions) modelVersionView.parse(view);
  expect(await queries.modelVersions({ modelName: 'other', limit: 1 })).toHaveLength(1);
  expect((await queries.endpoints({ includeRetired: false, limit: 10 })).map((view) => view.endpointId)).toEqual(['ep_02']);
  const all = await queries.endpoints({ includeRetired: true, limit: 10 });
  expect(all.map((view) => endpointView.parse(view).status)).toEqual(['active', 'retired']);
});

test('the fleet', async () => {
  await tell('node.joined.v2', 'node_01');
  await tell('node.joined.v2', 'node_02', { nodeId: 'node_02' });
  await tell('node.lost.v1', 'node_02', { nodeId: 'node_02' });
  await tell('replica.placed.v2', 'rep_01');
  await tell('replica.advanced.v1', 'rep_01');
  await tell('replica.ready.v1', 'rep_01');
  await tell('replica.placed.v2', 'rep_02', { replicaId: 'rep_02' });
  await tell('replica.failed.v1', 'rep_02', { replicaId: 'rep_02', phase: 'placed' });
  await project(fleetTableProjection);
  const queries = new PostgresFleetQueries(connection);
  expect((await queries.nodes()).map((view) => [nodeView.parse(view).nodeId, view.status])).toEqual([['node_01', 'up'], ['node_02', 'lost']]);
  const [living, ...others] = await queries.replicas({ includeEnded: false });
  expect(others).toEqual([]);
  expect(replicaView.parse(living)).toMatchObject({ replicaId: 'rep_01', phase: 'ready', slots: 4 });
  expect(Date.parse(living?.phaseSince ?? '') - Date.parse(living?.createdAt ?? '')).toBe(2_000);
  expect((await queries.replicas({ includeEnded: true })).map((view) => [view.replicaId, view.phase])).toEqual([['rep_02', 'failed'], ['rep_01', 'ready']]);
});

test('scaling decisions', async () => {
  await tell('wanted-replicas.changed.v1', 'ep_01');
  await tell('wanted-replicas.changed.v1', 'ep_02', { endpointId: 'ep_02', to: 3 });
  await project(scalingTableProjection);
  const queries = new PostgresScalingQueries(connection);
  const decisions = await queries.decisions({ limit: 10 });
  expect(decisions.map((view) => view.endpointId)).toEqual(['ep_02', 'ep_01']);
  listScalingDecisions.reply.parse({ decisions });
  expect(await queries.decisions({ endpointId: 'ep_01', limit: 10 })).toHaveLength(1);
});

test('files and batch jobs, each for its organisation, in pages', async () => {
  for (const number of [1, 2, 3]) await tell('file.uploaded.v1', `file_0${number}`, { fileId: `file_0${number}` });
  await tell('file.deleted.v1', 'file_02', { fileId: 'file_02' });
  await tell('batch-job.created.v2', 'batch_01');
  await tell('batch-job.created.v2', 'batch_02', { batchId: 'batch_02' });
  await tell('batch-job.started.v1', 'batch_01', { total: 100 });
  await tell('batch-job.chunk-completed.v1', 'batch_01', { chunk: 0, completed: 49, failed: 1 });
  await tell('batch-job.chunk-completed.v1', 'batch_01', { chunk: 0, completed: 49, failed: 1 });
  await tell('batch-job.chunk-completed.v1', 'batch_01', { chunk: 1, completed: 50, failed: 0 });
  await project(batchTableProjection);
  const queries = new PostgresBatchQueries(connection);
  expect((await queries.file('org_01', 'file_01'))?.objectKey).toBe('files/org_01/file_01');
  expect(await queries.file('org_02', 'file_01')).toBeUndefined();
  expect(await queries.file('org_01', 'file_02')).toBeUndefined();
  const first = await queries.files({ organisationId: 'org_01', order: 'desc', limit: 1 });
  expect(first).toMatchObject({ files: [{ id: 'file_03' }], hasMore: true });
  for (const file of first.files) fileObject.parse(file);
  expect(await queries.files({ organisationId: 'org_01', order: 'desc', limit: 1, after: 'file_03' })).toMatchObject({ files: [{ id: 'file_01' }], hasMore: false });
  expect(await queries.files({ organisationId: 'org_01', order: 'asc', limit: 9, purpose: 'batch_output' })).toEqual({ files: [], hasMore: false });
  expect(await queries.files({ organisationId: 'org_02', order: 'asc', limit: 9, after: 'file_01' })).toEqual({ files: [], hasMore: false });
  const job = batchObject.parse(await queries.batch('org_01', 'batch_01'));
  expect(job).toMatchObject({ status: 'finalizing', request_counts: { total: 100, completed: 99, failed: 1 } });
  expect(await queries.batch('org_02', 'batch_01')).toBeUndefined();
  expect(await queries.batches({ organisationId: 'org_01', limit: 1 })).toMatchObject({ batches: [{ id: 'batch_02' }], hasMore: true });
  expect(await queries.batches({ organisationId: 'org_01', limit: 1, after: 'batch_02' })).toMatchObject({ batches: [{ id: 'batch_01' }], hasMore: false });
  await tell('batch-job.finished.v1', 'batch_01');
  const projector = projectors.at(-1);
  await projector?.waitFor('EV_BATCH', log.all('EV_BATCH').length, WAIT_MS);
  expect(await queries.batch('org_01', 'batch_01')).toMatchObject({ status: 'completed', output_file_id: 'file_02' });
});

test('the usage ledger counts a request once, however often it is told', async () => {
  await tell('usage.recorded.v1', 'ep_01');
  await tell('usage.recorded.v1', 'ep_01', { promptTokens: 999 });
  // A batch line that a crash cut off and that ran again: what was delivered counts.
  await tell('usage.recorded.v1', 'ep_01', { requestId: 'req_03', organisationId: 'org_03', status: 'aborted', completionTokens: 1 });
  await tell('usage.recorded.v1', 'ep_01', { requestId: 'req_03', organisationId: 'org_03', status: 'completed', completionTokens: 30 });
  await tell('usage.recorded.v1', 'ep_01', { requestId: 'req_03', organisationId: 'org_03', status: 'interrupted', completionTokens: 9 });
  await tell('usage.recorded.v1', 'ep_01', { requestId: 'req_02', organisationId: 'org_02', ttftMs: null, replicaId: null });
  // One event of several requests: one of them new, one told before, one cut off and completed within the event.
  const record = usageRecordedV1.example;
  await tell('usage.recorded.v2', 'ep_01', { records: [
    { ...record, requestId: 'req_04', organisationId: 'org_04', completionTokens: 5 }, { ...record, promptTokens: 7_777 },
    { ...record, requestId: 'req_05', organisationId: 'org_05', status: 'failed', completionTokens: 1 }, { ...record, requestId: 'req_05', organisationId: 'org_05', completionTokens: 6 },
  ] });
  const projector = await project(meteringTableProjection);
  const queries = new PostgresUsageLedgerQueries(connection);
  expect(await queries.totals()).toEqual({ requests: 5, promptTokens: 160, completionTokens: 57, lastSequence: 7 });
  expect(await queries.totals('org_01')).toEqual({ requests: 1, promptTokens: 32, completionTokens: 8, lastSequence: 1 });
  expect(await queries.totals('org_none')).toEqual({ requests: 0, promptTokens: 0, completionTokens: 0, lastSequence: 0 });
  expect(await projector.rebuild()).toMatchObject({ identical: true, rows: 5 });
  expect((await queries.totals()).requests).toBe(5);
});
