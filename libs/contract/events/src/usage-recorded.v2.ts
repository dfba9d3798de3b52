import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { usageRecordedV1, type UsageRecordedV1 } from './usage-recorded.v1.js';

/** What one request used: version 1 of the event held one such record, version 2 holds several. */
export const usageRecord = usageRecordedV1.schema;
export type UsageRecord = UsageRecordedV1;

/** Records of one event. Readers count on it when they bound what they hold. */
export const USAGE_RECORDS_MAX = 100;

export const usageRecordedV2 = defineEvent({
  type: 'usage.recorded.v2',
  context: 'usage',
  aggregate: '<organisation>',
  summary: 'Requests of one organisation at one endpoint ended, in whatever way; this is what each of them used. The subject is `ev.usage.<organisation>.<endpoint>`. A request whose trace is sampled has an event of its own, in its trace.',
  schema: z.object({
    /** In the order of their ends. Sinks count a request id once, however often and in whatever company it arrives. */
    records: z.array(usageRecord).min(1).max(USAGE_RECORDS_MAX),
  }),
  example: { records: [usageRecordedV1.example, { ...usageRecordedV1.example, requestId: 'req_02', stream: false, ttftMs: null, completionTokens: 12 }] },
});

export type UsageRecordedV2 = z.infer<typeof usageRecordedV2.schema>;
