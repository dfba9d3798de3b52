import type { NodeHeartbeat } from '@penstock/contract-commands';
import { catalogProjection } from '@penstock/domain-catalog';
import { fleetProjection } from '@penstock/domain-lifecycle';
import { ReconcileLoop } from '@penstock/feature-shell';
import type { AgentConfig } from './agent-config.js';
import { NodeMemory } from './agent-memory.js';
import type { AgentPorts } from './agent-ports.js';
import { FleetReporter } from './fleet-reporter.js';
import { NodeReconciler } from './node-reconciler.js';
import { buildNodeReport, type NodePlacement } from './node-report.js';

/** Of the time that a service has to stop, running requests may use this much; the rest is for stopping engines and saying so. */
const DRAIN_SHARE = 0.6;

export interface RunningAgent {
  readonly nodeId: string;
  readonly replicaIds: () => readonly string[];
  /** Drains and stops the replicas and says that the node leaves; or leaves the engines to the next agent. */
  drain(): Promise<void>;
  close(): Promise<void>;
  /** Ends timers and subscriptions and leaves everything else as a crash would: for tests. */
  vanish(): Promise<void>;
}

/** Everything of the agent except its HTTP server. Resolves once the node has joined and survivors are adopted. */
export async function runAgent(config: AgentConfig, ports: AgentPorts): Promise<RunningAgent> {
  const logger = ports.logger.child({ service: 'agent' });
  const memory = await NodeMemory.open(ports.records, ports.ids);
  const { nodeId } = memory;
  const report = await buildNodeReport({ nodeId, hardware: ports.hardware, drivers: ports.drivers, agentVersion: ports.agentVersion, placement: placementOf(config) });
  const fleet = await ports.follow(fleetProjection);
  const catalog = await ports.follow(catalogProjection);
  const reporter = new FleetReporter({ ...ports, logger });
  const holder: { loop?: ReconcileLoop } = {};
  const reconciler = new NodeReconciler({ config, ports, memory, reporter, logger, fleet, catalog, report, onSettled: () => holder.loop?.trigger() });
  const loop = new ReconcileLoop({ timers: ports.timers, logger, intervalMs: config.RECONCILE_INTERVAL_MS, reconcile: reconciler.reconcile });
  holder.loop = loop;
  await reconciler.adoptSurvivors();
  await reporter.join(report);

  const heartbeat = async (): Promise<void> => {
    const diskFreeBytes = await ports.artifacts.freeDiskBytes().catch(() => 0);
    const body: NodeHeartbeat = { nodeId, sentAtMs: ports.clock.now(), replicas: [...reconciler.replicaIds], diskFreeBytes };
    ports.signals.publish(`tele.node.${nodeId}`, body);
  };
  const stops = [
    fleet.onChange(loop.trigger), catalog.onChange(loop.trigger),
    ports.timers.every(config.HEARTBEAT_INTERVAL_MS, heartbeat),
    ports.timers.every(config.TELEMETRY_INTERVAL_MS, () => reconciler.sampleTelemetry()),
  ];
  await heartbeat();
  loop.start();

  const disconnect = async (): Promise<void> => {
    for (const stop of stops) stop();
    await loop.close();
    reporter.close();
    await Promise.all([fleet.close(), catalog.close()]);
  };
  let leaving: Promise<void> | undefined;
  const drain = async (): Promise<void> => {
    await loop.close();
    if (config.AGENT_KEEP_ENGINES) return reconciler.abandonAll();
    await reconciler.leave(Math.floor(config.DRAIN_TIMEOUT_MS * DRAIN_SHARE));
    await reporter.leave(nodeId, 'the agent was stopped');
  };
  return {
    nodeId,
    replicaIds: () => reconciler.replicaIds,
    drain: () => (leaving ??= drain()),
    close: async () => {
      await disconnect();
      // A drain that the time-out cut short must not leave engines that nobody wants.
      if (!config.AGENT_KEEP_ENGINES) await reconciler.endAll();
    },
    vanish: async () => {
      reconciler.detach();
      await disconnect();
    },
  };
}

function placementOf(config: AgentConfig): NodePlacement {
  return { failureDomain: config.AGENT_FAILURE_DOMAIN ?? null, taints: config.AGENT_TAINTS, market: config.AGENT_MARKET, dollarsPerGpuHour: config.AGENT_DOLLARS_PER_GPU_HOUR ?? null };
}
