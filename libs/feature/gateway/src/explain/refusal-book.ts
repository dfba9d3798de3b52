import { describeError, type ApiFault } from '@penstock/contract-http';
import type { DirectCall } from '../http/route-call.js';
import { RequestBook } from './request-book.js';

/** Refusals that are remembered. */
const REFUSALS_MAX = 10_000;

export interface NotedRefusal {
  readonly organisationId: string;
  readonly projectId: string;
  readonly atMs: number;
  readonly operation: string;
  /** Null when it was refused before its model was found. */
  readonly model: string | null;
  readonly fault: ApiFault;
}

/** The newest requests to models that this gateway could not serve, for whoever asks why. What they said is not kept. */
export class RefusalBook {
  private readonly refusals = new RequestBook<NotedRefusal>(REFUSALS_MAX);

  /** Notes what waiting, or somebody's help, may mend: mistakes in a request explain themselves. */
  note({ requestId, principal }: Pick<DirectCall, 'requestId' | 'principal'>, request: Pick<NotedRefusal, 'operation' | 'model' | 'atMs'>, fault: ApiFault): void {
    const { status } = describeError(fault.code);
    if (status !== 429 && status < 500) return;
    this.refusals.note(requestId, { organisationId: principal.organisationId, projectId: principal.projectId, ...request, fault });
  }

  find(requestId: string): NotedRefusal | undefined {
    return this.refusals.find(requestId);
  }
}
