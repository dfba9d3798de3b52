import type { NodeJoinedV2 } from '@penstock/contract-events';
import { nodeDecider, nodeRef, replicaDecider, replicaRef, type ReplicaCommand } from '@penstock/domain-lifecycle';
import { EventLogUnavailableError, handleCommand, type AggregateRef, type Clock, type Decider, type EventLog, type IdSource, type Logger, type NewEvent, type Timers } from '@penstock/kernel';

export const AGENT_SOURCE = 'penstock/agent';

/** Waits between tries to reach the log; the last one repeats. */
const RETRY_DELAYS_MS = [100, 250, 500, 1_000, 2_000] as const;

export interface FleetReporterParts {
  readonly log: EventLog;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly timers: Timers;
  readonly logger: Logger;
}

/** Says facts about this node and its replicas to the fleet's stream. */
export class FleetReporter {
  private isClosed = false;

  constructor(private readonly parts: FleetReporterParts) {}

  /** Ends every retry: what could not be said by now stays unsaid. */
  close(): void {
    this.isClosed = true;
  }

  /** One try. Throws while the log cannot be reached. */
  async join(report: NodeJoinedV2): Promise<void> {
    await handleCommand(this.parts.log, nodeDecider, nodeRef(report.nodeId), { kind: 'join', ...report }, this.metadata());
  }

  /** One try. Throws while the log cannot be reached. */
  async leave(nodeId: string, reason: string): Promise<void> {
    await handleCommand(this.parts.log, nodeDecider, nodeRef(nodeId), { kind: 'lose', cause: 'left', reason }, this.metadata());
  }

  /** One try, for facts that the next reconciliation says again. Throws while the log cannot be reached. */
  async tell<State, Command, Event extends NewEvent>(decider: Decider<State, Command, Event>, ref: AggregateRef, command: Command): Promise<void> {
    await handleCommand(this.parts.log, decider, ref, command, this.metadata());
  }

  /**
   * Says something about a replica, again and again until the log took it: engines go on while the log is away.
   * False when the replica moved on meanwhile, so that the fact does not fit any more, when `signal` fired, or after `close`.
   */
  async replica(replicaId: string, command: ReplicaCommand, signal?: AbortSignal): Promise<boolean> {
    const metadata = this.metadata();
    for (let attempt = 0; signal?.aborted !== true && !this.isClosed; attempt += 1) {
      try {
        const outcome = await handleCommand(this.parts.log, replicaDecider, replicaRef(replicaId), command, metadata);
        if (outcome.kind === 'refused') this.parts.logger.info({ replicaId, command: command.kind, reason: outcome.refusal.message }, 'the replica moved on meanwhile');
        return outcome.kind === 'done';
      } catch (error) {
        if (!(error instanceof EventLogUnavailableError)) throw error;
        if (attempt === 0) this.parts.logger.warn({ err: error, replicaId, command: command.kind }, 'the event log is away; the fact waits for it');
        await this.pause(RETRY_DELAYS_MS[Math.min(attempt, RETRY_DELAYS_MS.length - 1)] ?? 0);
      }
    }
    return false;
  }

  private pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => this.parts.timers.after(delayMs, resolve));
  }

  private metadata() {
    const commandId = this.parts.ids.next('cmd');
    return { commandId, correlationId: commandId, causationId: commandId, source: AGENT_SOURCE, nowMs: this.parts.clock.now() };
  }
}
