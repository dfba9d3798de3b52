import { createMetrics, startService, type RunningService } from '@penstock/feature-shell';
import { Gauge } from 'prom-client';
import type { AgentConfig } from './agent-config.js';
import type { AgentPorts } from './agent-ports.js';
import { AgentModule } from './agent.module.js';
import { runAgent } from './run-agent.js';

export interface RunningAgentService extends RunningService {
  readonly nodeId: string;
}

/** Starts the agent of this node: joins the fleet, and pulls, starts, watches, drains and stops what is placed here. */
export async function startAgent(config: AgentConfig, ports: AgentPorts): Promise<RunningAgentService> {
  const agent = await runAgent(config, ports);
  const metrics = createMetrics('agent');
  new Gauge({
    name: 'penstock_agent_replicas', help: 'Replicas that this node starts, runs or stops', registers: [metrics],
    collect() { this.set(agent.replicaIds().length); },
  });
  new Gauge({
    name: 'penstock_agent_disk_free_bytes', help: 'Free bytes where model files are kept', registers: [metrics],
    async collect() { this.set(await ports.artifacts.freeDiskBytes().catch(() => 0)); },
  });
  try {
    const service = await startService({ name: 'agent', module: AgentModule, metrics, onDrain: () => agent.drain(), onClose: () => agent.close() }, config, ports);
    return { name: service.name, url: service.url, close: () => service.close(), nodeId: agent.nodeId };
  } catch (error) {
    await agent.close();
    throw error;
  }
}
