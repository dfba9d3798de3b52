import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id, modelName } from './fields.js';

const amount = z.int().min(1).max(1_000_000_000_000).nullable();

/** Model names with limits of their own under one subject. */
export const LIMITED_MODELS_MAX = 200;

/** What one caller may use at most; null sets no limit. */
export const accessLimits = z.object({
  requestsPerMinute: amount,
  /** Prompt and completion tokens together. */
  tokensPerMinute: amount,
  /** Requests in work or waiting at the same time. */
  concurrency: amount,
  /** Prompt and answer of one request together, in tokens. */
  contextTokensMax: amount,
  /** Which class of the queue its requests stand in. */
  priorityTier: z.enum(['reserved', 'paid', 'best-effort', 'batch']).nullable(),
});
export type AccessLimits = z.infer<typeof accessLimits>;

export const limitsSetV1 = defineEvent({
  type: 'limits.set.v1',
  context: 'access',
  aggregate: 'limits',
  summary: 'The limits of an organisation, a project or a key were set, for all models together or for one. They replace earlier ones; all null takes them away.',
  schema: z.object({
    /** What `subjectId` names. */
    subject: z.enum(['organisation', 'project', 'key']),
    subjectId: id,
    organisationId: id,
    /** Null for what all models may use together. */
    model: modelName.nullable(),
    limits: accessLimits,
  }),
  example: {
    subject: 'project', subjectId: 'proj_01', organisationId: 'org_01', model: null,
    limits: { requestsPerMinute: 600, tokensPerMinute: 100_000, concurrency: 20, contextTokensMax: null, priorityTier: 'paid' },
  },
});

export type LimitsSetV1 = z.infer<typeof limitsSetV1.schema>;
