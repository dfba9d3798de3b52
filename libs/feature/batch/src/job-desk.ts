import type { createBatch, listBatches } from '@penstock/contract-commands';
import type { BatchObject } from '@penstock/contract-commands';
import {
  BATCH_INPUT_BYTES_MAX, batchJobDecider, batchJobRef, fileNotFound, parseCompletionWindow, toBatchObject, type BatchState,
} from '@penstock/domain-batching';
import { ok, refused, type HandlerOutcome } from '@penstock/feature-shell';
import { handleCommand, type Causation, type LiveProjection } from '@penstock/kernel';
import type { z } from 'zod';
import type { BatchPorts } from './batch-ports.js';
import type { FileDesk } from './file-desk.js';
import { pageOf } from './page-of.js';
import { loadState } from './load-state.js';
import { asked } from './metadata-of.js';

/** Batch jobs: what the commands on them do. The work itself is the reactor's. */
export class JobDesk {
  constructor(private readonly ports: BatchPorts, private readonly live: LiveProjection<BatchState>, private readonly files: FileDesk, private readonly claim: (batchId: string) => void) {}

  async create(request: z.output<typeof createBatch.request>, causation: Causation): Promise<HandlerOutcome<BatchObject>> {
    const { ports } = this;
    const { completionWindow, ...rest } = request;
    const completionWindowSeconds = parseCompletionWindow(completionWindow);
    if (completionWindowSeconds === undefined) return refused({ code: 'invalid_value', message: "completion_window must be '24h'.", param: 'completion_window' });
    const file = await this.files.load(request.organisationId, request.inputFileId);
    if (file === undefined) return refused({ ...fileNotFound(request.inputFileId), param: 'input_file_id' });
    if (file.purpose !== 'batch') return refused({ code: 'invalid_file', message: `The input file must have the purpose 'batch', not '${file.purpose}'.`, param: 'input_file_id' });
    if (file.bytes > BATCH_INPUT_BYTES_MAX) return refused({ code: 'invalid_file', message: `The input file has ${file.bytes} bytes; a batch takes at most ${BATCH_INPUT_BYTES_MAX}. Split it into several batches.`, param: 'input_file_id' });
    const nowMs = ports.clock.now();
    const batchId = ports.ids.next('batch');
    const data = { ...rest, batchId, completionWindowSeconds, expiresAt: new Date(nowMs + completionWindowSeconds * 1_000).toISOString() };
    const outcome = await handleCommand(ports.log, batchJobDecider, batchJobRef(batchId), { kind: 'create', nowMs, data }, asked(ports, causation));
    if (outcome.kind === 'refused') return refused(outcome.refusal);
    this.claim(batchId);
    return outcome.state === null ? refused(batchNotFound(batchId)) : ok(toBatchObject(outcome.state));
  }

  async get(organisationId: string, batchId: string): Promise<HandlerOutcome<BatchObject>> {
    const job = await loadState(this.ports.log, batchJobDecider, batchJobRef(batchId));
    return job === null || job.organisationId !== organisationId ? refused(batchNotFound(batchId)) : ok(toBatchObject(job));
  }

  async list(query: z.output<typeof listBatches.request>): Promise<HandlerOutcome<z.input<typeof listBatches.reply>>> {
    if (this.ports.queries !== undefined) {
      try {
        const { batches, hasMore } = await this.ports.queries.batches(query);
        return ok({ batches: [...batches], hasMore });
      } catch (error) {
        this.ports.logger.warn({ err: error }, 'the database does not answer; batch jobs are told from memory');
      }
    }
    const jobs = [...this.live.state().jobs.values()].filter((job) => job.organisationId === query.organisationId).reverse();
    const { page, hasMore } = pageOf(jobs, (job) => job.batchId, query);
    return ok({ batches: page.map(toBatchObject), hasMore });
  }

  async cancel(organisationId: string, batchId: string, causation: Causation): Promise<HandlerOutcome<BatchObject>> {
    const { ports } = this;
    const command = { kind: 'request-cancel', nowMs: ports.clock.now(), batchId, organisationId } as const;
    const outcome = await handleCommand(ports.log, batchJobDecider, batchJobRef(batchId), command, asked(ports, causation));
    if (outcome.kind === 'refused') return refused(outcome.refusal);
    return outcome.state === null ? refused(batchNotFound(batchId)) : ok(toBatchObject(outcome.state));
  }
}

function batchNotFound(batchId: string): { readonly code: string; readonly message: string; readonly param: string } {
  return { code: 'batch_not_found', message: `No batch found with id '${batchId}'.`, param: 'batch_id' };
}
