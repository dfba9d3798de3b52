import {
  ArtifactInspectionError, formatMismatch, hasNothingToPull, inspectedRegistration, inspectedTensors, modelVersionDecider, modelVersionRef,
  type ArtifactInspector, type CatalogState, type ModelVersionCommand, type ModelVersionState,
} from '@penstock/domain-catalog';
import { handleCommand, type Clock, type EventLog, type IdSource, type LiveProjection, type Logger } from '@penstock/kernel';
import { newCommand } from './command-metadata.js';

/** How often a reading that failed for an unknown reason is tried before the version is rejected. */
export const INSPECTION_TRIES_MAX = 3;

/** As long as an event takes it. */
const REASON_LENGTH_MAX = 2_000;

export interface InspectionReactorPorts {
  readonly log: EventLog;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly logger: Logger;
  readonly inspector: ArtifactInspector;
  readonly catalog: LiveProjection<CatalogState>;
}

/**
 * Reads the artifacts of every submitted model version and tells the log what it found, one after the other. It looks at what
 * is and remembers nothing that matters: after a restart it starts the reading anew, and of two instances the first one's word counts.
 */
export class InspectionReactor {
  private readonly failures = new Map<string, number>();
  private isClosing = false;
  private stopWaiting: () => void = () => undefined;
  private readonly closed = new Promise<void>((resolve) => {
    this.stopWaiting = resolve;
  });

  constructor(private readonly ports: InspectionReactorPorts) {}

  readonly reconcile = async (): Promise<void> => {
    for (const version of this.pending()) {
      if (this.isClosing) return;
      await this.work(version);
    }
  };

  /** Waits for no reading: what was pulled so far stays in the cache, and the next start goes on with it. */
  close(): void {
    this.isClosing = true;
    this.stopWaiting();
  }

  private pending(): readonly ModelVersionState[] {
    const submitted = [...this.ports.catalog.state().modelVersions.values()].filter((version) => version.status === 'submitted' && !hasNothingToPull(version.source));
    return submitted.sort((a, b) => a.createdAtMs - b.createdAtMs);
  }

  private async work(version: ModelVersionState): Promise<void> {
    const logger = this.ports.logger.child({ modelVersionId: version.modelVersionId, modelName: version.modelName });
    logger.info({ source: version.source.kind }, 'reading the artifacts of a model version');
    const command = await Promise.race([this.inspect(version, logger), this.closed]);
    if (command === undefined) return;
    const outcome = await handleCommand(this.ports.log, modelVersionDecider, modelVersionRef(version.modelVersionId), command, newCommand(this.ports));
    if (outcome.kind === 'refused') {
      logger.error({ refusal: outcome.refusal }, 'the outcome of a reading was refused');
      return;
    }
    this.failures.delete(version.modelVersionId);
    logger.info({ outcome: outcome.state.status }, 'model version was read');
    // The next round must see this one's end, or it would read the same artifacts again.
    await Promise.race([this.ports.catalog.waitFor('EV_REGISTRY', outcome.lastSequence), this.closed]);
  }

  /** What to tell the log; undefined when a failure is to be tried again by the next round. */
  private async inspect(version: ModelVersionState, logger: Logger): Promise<ModelVersionCommand | undefined> {
    try {
      const inspected = await this.ports.inspector.inspect(version.source, version.fallbackSources, version.expectedDigest);
      const mismatch = formatMismatch(version, inspected);
      if (mismatch !== undefined) return rejection('invalid_file', mismatch);
      return { kind: 'register', data: inspectedRegistration(version, inspected), tensors: inspectedTensors(version, inspected) };
    } catch (error) {
      if (error instanceof ArtifactInspectionError) return rejection(error.code, error.message);
      const tries = (this.failures.get(version.modelVersionId) ?? 0) + 1;
      this.failures.set(version.modelVersionId, tries);
      logger.warn({ err: error, tries }, 'reading the artifacts failed unexpectedly');
      if (tries < INSPECTION_TRIES_MAX) return undefined;
      return rejection('inspection_failed', `Reading the artifacts failed ${tries} times; the registry's log has the reason. Register the version again to start anew.`);
    }
  }
}

function rejection(code: string, reason: string): ModelVersionCommand {
  return { kind: 'reject', code, reason: reason.slice(0, REASON_LENGTH_MAX) };
}
