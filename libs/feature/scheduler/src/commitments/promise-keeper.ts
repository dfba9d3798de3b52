import type { CatalogState } from '@penstock/domain-catalog';
import { commitmentDecider, overdue, type CommitmentBook } from '@penstock/domain-placement';
import type { Clock, IdSource, LiveProjection, Logger } from '@penstock/kernel';
import type { CommitmentWriter } from './commitment-writer.js';

/** Promises ended in one run; the next run goes on. */
const ENDED_PER_RUN_MAX = 20;

export interface PromiseKeeperParts {
  readonly book: LiveProjection<CommitmentBook>;
  readonly catalog: LiveProjection<CatalogState>;
  readonly writer: CommitmentWriter;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly logger: Logger;
}

/** Ends promises that are over, and those of endpoints that were retired. Who writes first ends them; the others see that. */
export class PromiseKeeper {
  constructor(private readonly parts: PromiseKeeperParts) {}

  async endOverdue(): Promise<void> {
    const { book, catalog, writer, clock, ids, logger } = this.parts;
    const isRetired = (endpointId: string): boolean => catalog.state().endpoints.get(endpointId)?.status === 'retired';
    for (const due of overdue(book.state(), clock.now(), isRetired).slice(0, ENDED_PER_RUN_MAX)) {
      const decision = commitmentDecider.decide({ kind: 'release', ...due }, book.state());
      if (decision.kind === 'refused' || decision.events.length === 0) continue;
      const id = ids.next('cmd');
      if (await writer.append(decision.events, book.state().lastSequence, { correlationId: id, causationId: id })) logger.info(due, 'reservation ended');
    }
  }
}
