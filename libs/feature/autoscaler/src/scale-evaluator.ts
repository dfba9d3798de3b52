import type { CatalogState, EndpointState } from '@penstock/domain-catalog';
import { isStarting, type FleetState } from '@penstock/domain-lifecycle';
import { decideScale, emptyLoadMemory, observeLoad, type LoadMemory, type ScalingState } from '@penstock/domain-scaling';
import type { Clock, LiveProjection, Logger } from '@penstock/kernel';
import type { LoadWatch } from './load-watch.js';
import type { ScaleWriter } from './scale-writer.js';

export interface EvaluatorParts {
  readonly catalog: LiveProjection<CatalogState>;
  readonly fleet: LiveProjection<FleetState>;
  readonly scaling: LiveProjection<ScalingState>;
  readonly loads: LoadWatch;
  readonly writer: ScaleWriter;
  readonly clock: Clock;
  readonly logger: Logger;
}

interface ReplicaCounts {
  ready: number;
  starting: number;
}

const NO_REPLICAS: Readonly<ReplicaCounts> = { ready: 0, starting: 0 };

function countReplicas(fleet: FleetState): ReadonlyMap<string, ReplicaCounts> {
  const counts = new Map<string, ReplicaCounts>();
  for (const { endpointId, phase } of fleet.replicas.values()) {
    const count = counts.get(endpointId) ?? { ready: 0, starting: 0 };
    if (phase === 'ready') count.ready += 1;
    if (isStarting(phase)) count.starting += 1;
    counts.set(endpointId, count);
  }
  return counts;
}

/**
 * Asks the rules about every endpoint and appends what they decide. Only how long conditions have lasted is kept between
 * runs; after a restart those times begin anew, which can delay a decision and never hastens one.
 */
export class ScaleEvaluator {
  private readonly memories = new Map<string, LoadMemory>();
  private readonly writtenSequences = new Map<string, number>();

  constructor(private readonly parts: EvaluatorParts) {}

  readonly evaluate = async (): Promise<void> => {
    const { endpoints } = this.parts.catalog.state();
    const counts = countReplicas(this.parts.fleet.state());
    for (const endpoint of [...endpoints.values()]) await this.evaluateOne(endpoint, counts.get(endpoint.endpointId) ?? NO_REPLICAS);
    for (const map of [this.memories, this.writtenSequences]) for (const endpointId of map.keys()) if (!endpoints.has(endpointId)) map.delete(endpointId);
    this.parts.loads.prune((endpointId) => endpoints.has(endpointId));
  };

  private async evaluateOne(endpoint: EndpointState, { ready, starting }: ReplicaCounts): Promise<void> {
    const { scaling, loads, clock, writer, logger } = this.parts;
    const { endpointId } = endpoint;
    const wanted = scaling.state().wanted.get(endpointId);
    if (endpoint.status === 'retired' && (wanted?.replicas ?? 0) === 0) return;
    const nowMs = clock.now();
    const load = loads.read(endpointId);
    const slotsPerReplica = endpoint.serving.slotsPerReplica;
    const memory = observeLoad(this.memories.get(endpointId) ?? emptyLoadMemory, { load, nowMs, wanted: wanted?.replicas ?? 0, coming: ready + starting, slotsPerReplica });
    this.memories.set(endpointId, memory);
    if (!this.hasSeenOwnDecision(endpointId)) return;
    const decision = decideScale({ status: endpoint.status, scaling: endpoint.scaling, slotsPerReplica, wanted, ready, starting, load, memory, nowMs });
    if (decision === undefined) return;
    logger.info({ endpointId, from: wanted?.replicas ?? 0, ...decision }, 'wanted replicas change');
    const outcome = await writer.change(endpointId, wanted?.replicas ?? 0, decision);
    if (outcome.kind === 'done') this.writtenSequences.set(endpointId, outcome.lastSequence);
  }

  private hasSeenOwnDecision(endpointId: string): boolean {
    return (this.parts.scaling.positions()['EV_SCALING'] ?? 0) >= (this.writtenSequences.get(endpointId) ?? 0);
  }
}
