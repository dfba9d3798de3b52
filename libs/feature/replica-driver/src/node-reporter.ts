import type { NodeHeartbeat } from '@penstock/contract-commands';
import { isLiving, nodeDecider, nodeRef, type DrivenNode, type FleetState } from '@penstock/domain-lifecycle';
import type { LiveProjection, Logger } from '@penstock/kernel';
import type { ReplicaDriverConfig } from './driver-config.js';
import type { ReplicaDriverPorts } from './driver-ports.js';
import { Elapsed } from './elapsed.js';
import type { FleetFacts } from './fleet-facts.js';

export interface NodeReporterParts {
  readonly config: ReplicaDriverConfig;
  readonly ports: ReplicaDriverPorts;
  readonly fleet: LiveProjection<FleetState>;
  readonly facts: FleetFacts;
  readonly logger: Logger;
}

/** Speaks for the nodes of a driver: joins, changes, losses, and a heartbeat for each that is ready. */
export class NodeReporter {
  private readonly unready: Elapsed;
  /** What was said last of each node, so that the log is asked only about changes. */
  private readonly said = new Map<string, string>();

  constructor(private readonly parts: NodeReporterParts) {
    this.unready = new Elapsed(parts.ports.clock);
  }

  async report(): Promise<void> {
    const { driver } = this.parts.ports;
    const nodes = new Map(driver.nodes().map((node) => [node.report.nodeId, node]));
    for (const node of nodes.values()) await this.reportOne(node);
    for (const known of [...this.parts.fleet.state().nodes.values()]) {
      if (known.status !== 'up' || !driver.owns(known.nodeId) || nodes.has(known.nodeId)) continue;
      await this.lose(known.nodeId, 'left', 'it does not exist any more');
    }
    this.unready.keepOnly((nodeId) => nodes.has(nodeId));
  }

  heartbeat(): void {
    const { ports, fleet } = this.parts;
    if (!ports.driver.isSynced()) return;
    const replicas = Map.groupBy([...fleet.state().replicas.values()].filter((replica) => isLiving(replica.phase)), (replica) => replica.nodeId);
    for (const { report, isReady } of ports.driver.nodes()) {
      if (!isReady) continue;
      const body: NodeHeartbeat = { nodeId: report.nodeId, sentAtMs: ports.clock.now(), replicas: (replicas.get(report.nodeId) ?? []).map((replica) => replica.replicaId), diskFreeBytes: 0 };
      ports.signals.publish(`tele.node.${report.nodeId}`, body);
    }
  }

  private async reportOne({ report, isReady, reason, reclaimAt }: DrivenNode): Promise<void> {
    const { config, fleet, facts, logger } = this.parts;
    const { nodeId } = report;
    const unreadyMs = this.unready.of(nodeId, !isReady);
    const isUp = fleet.state().nodes.get(nodeId)?.status === 'up';
    if (!isReady) {
      if (isUp && unreadyMs >= config.NODE_GRACE_MS) await this.lose(nodeId, 'missed-heartbeats', reason ?? 'it is not ready');
      return;
    }
    if (isUp && reclaimAt !== undefined && fleet.state().nodes.get(nodeId)?.reclaimAt !== reclaimAt) {
      logger.warn({ nodeId, reclaimAt }, 'its owner takes the node back');
      await facts.say(nodeDecider, nodeRef(nodeId), { kind: 'announce-reclaim', reclaimAt, reason: 'announced by its owner' });
    }
    const content = JSON.stringify(report);
    if (isUp && this.said.get(nodeId) === content) return;
    logger.info({ nodeId, hostname: report.hostname, accelerators: report.accelerators.length }, 'node joins or changed');
    await facts.say(nodeDecider, nodeRef(nodeId), { kind: 'join', ...report });
    this.said.set(nodeId, content);
  }

  private async lose(nodeId: string, cause: 'missed-heartbeats' | 'left', reason: string): Promise<void> {
    this.parts.logger.warn({ nodeId, cause, reason }, 'node lost');
    await this.parts.facts.say(nodeDecider, nodeRef(nodeId), { kind: 'lose', cause, reason });
    this.said.delete(nodeId);
  }
}
