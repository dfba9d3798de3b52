import { EntitySchema } from '@mikro-orm/postgresql';
import type { UsageRecord } from '@penstock/contract-events';
import { supersedesUsage } from '@penstock/domain-usage';
import { foldTable } from '../projection/table-projection.js';
import { instantColumn, keyText, wholeNumber } from '../table-columns.js';

export interface UsageLedgerRow extends Omit<UsageRecord, 'startedAt'> {
  readonly startedAt: Date;
  readonly recordedAt: Date;
  readonly eventId: string;
  readonly sequence: number;
}

const text = { type: 'text' } as const;
const nullableText = { type: 'text', nullable: true } as const;
const count = wholeNumber;
const fraction = { type: 'double' } as const;

/** The money's source: one row for each request, for ever, whatever is delivered twice. */
export const usageLedgerTable = new EntitySchema<UsageLedgerRow>({
  name: 'UsageLedgerRow',
  tableName: 'usage_ledger',
  schema: '*',
  properties: {
    requestId: { ...text, ...keyText, primary: true },
    organisationId: text,
    projectId: text,
    keyId: text,
    endpointId: text,
    modelName: text,
    modelVersionId: text,
    replicaId: nullableText,
    batchId: nullableText,
    operation: text,
    stream: { type: 'boolean' },
    status: text,
    finishReason: nullableText,
    httpStatus: { type: 'integer' },
    errorCode: nullableText,
    promptTokens: count,
    cachedTokens: count,
    completionTokens: count,
    reasoningTokens: count,
    tokensEstimated: { type: 'boolean' },
    startedAt: { type: 'datetime', ...instantColumn },
    queueMs: fraction,
    ttftMs: { ...fraction, nullable: true },
    durationMs: fraction,
    engineMs: fraction,
    recordedAt: { type: 'datetime', ...instantColumn },
    eventId: text,
    sequence: count,
  },
  indexes: [{ name: 'usage_ledger_by_organisation', properties: ['organisationId', 'startedAt'] }],
});

export const usageLedgerFold = foldTable<UsageLedgerRow>({
  table: usageLedgerTable,
  key: 'requestId',
  keysOf: (event) => (event.type === 'usage.recorded.v2' ? [...new Set(event.data.records.map(({ requestId }) => requestId))] : []),
  fold(before, event, requestId) {
    let row = before;
    if (event.type !== 'usage.recorded.v2') return row;
    for (const record of event.data.records) {
      if (record.requestId !== requestId || (row !== undefined && !supersedesUsage(record, row))) continue;
      row = { ...record, startedAt: new Date(record.startedAt), recordedAt: new Date(event.time), eventId: event.id, sequence: event.sequence };
    }
    return row;
  },
});
