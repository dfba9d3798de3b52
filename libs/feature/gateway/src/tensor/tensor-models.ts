import { isTensorEngine, type TensorSpec } from '@penstock/contract-events';
import { tensorModel } from '@penstock/contract-http';
import type { EndpointState } from '@penstock/domain-catalog';
import { readyReplicasOf } from '@penstock/domain-lifecycle';
import type { Clock } from '@penstock/kernel';
import { callerWords } from '../chat/prompt-facts.js';
import type { ReplicaClients } from '../chat/replica-clients.js';
import type { GatewayViews } from '../gateway-views.js';
import { RequestFault } from '../http/request-fault.js';
import type { DirectCall } from '../http/route-call.js';
import { findModel, versionOf, versionsOf } from '../frame/find-model.js';
import { callTensorEngine } from './tensor-call.js';

/** A replica that takes longer to describe its model is not asked again for this request. */
const DESCRIBE_TIMEOUT_MS = 5_000;
/** Whoever runs an attached engine may give it another model, so what it said is asked again after this long. */
const DESCRIPTION_MS = 60_000;
/** Descriptions that are kept, by model version; the oldest goes first. */
const DESCRIPTIONS_MAX = 1_024;

export interface ModelTensors {
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
}

/** A model as the caller named it, which it may call and which takes tensors. */
export interface TensorModelCall {
  readonly endpoint: EndpointState;
  readonly version: string;
}

/** Finds models of tensors, and what they take and give: out of the registry's reading, else from a replica. */
export class TensorModels {
  private readonly described = new Map<string, { readonly tensors: ModelTensors; readonly untilMs: number }>();

  constructor(private readonly views: GatewayViews, private readonly clients: ReplicaClients, private readonly clock: Clock) {}

  /** Throws a {@link RequestFault} with the same words whether there is no such model or the caller may not use it. */
  find(name: string, version: string | undefined, call: Pick<DirectCall, 'principal' | 'requestId' | 'request'>): TensorModelCall {
    const endpoint = findModel(this.views, name, call, callerWords(call.request.headers, undefined), version);
    if (!isTensorEngine(endpoint.engine)) {
      throw new RequestFault({ code: 'unsupported_value', message: `The model '${name}' takes text and no tensors. Call it at POST /v1/chat/completions.`, param: 'model_name' });
    }
    return { endpoint, version: versionOf(this.views.catalog.state(), endpoint) };
  }

  /** Every version that a request for the name may ask for. */
  versions(name: string, { principal }: Pick<DirectCall, 'principal'>): readonly string[] {
    return versionsOf(this.views.catalog.state(), name, principal.organisationId);
  }

  /** What is known without asking anybody; null where only a replica can tell. */
  tensorsOf({ modelVersionId }: EndpointState): ModelTensors | null {
    const read = this.views.catalog.state().modelVersions.get(modelVersionId)?.tensors;
    if (read !== undefined && read !== null) return read;
    const told = this.described.get(modelVersionId);
    return told !== undefined && told.untilMs > this.clock.now() ? told.tensors : null;
  }

  /** Asks the ready replicas in turn where nothing is known. Throws a {@link RequestFault} when none tells. */
  async describe(endpoint: EndpointState): Promise<ModelTensors> {
    const known = this.tensorsOf(endpoint);
    if (known !== null) return known;
    for (const { url, servedModel } of readyReplicasOf(this.views.fleet.state(), endpoint.endpointId)) {
      const told = url === null || servedModel === null ? undefined : await this.ask(url, servedModel);
      if (told === undefined) continue;
      this.described.delete(endpoint.modelVersionId);
      this.described.set(endpoint.modelVersionId, { tensors: told, untilMs: this.clock.now() + DESCRIPTION_MS });
      const [oldest] = this.described.keys();
      if (this.described.size > DESCRIPTIONS_MAX && oldest !== undefined) this.described.delete(oldest);
      return told;
    }
    throw new RequestFault({ code: 'model_loading', message: `The tensors of '${endpoint.name}' are not known, since no replica of it is ready. Send an inference to start one, or try again shortly.`, retryAfterMs: 5_000 });
  }

  /** True when a replica is there that answered a real inference: an engine's own word is not taken for it. */
  isReady({ endpointId }: EndpointState): boolean {
    return readyReplicasOf(this.views.fleet.state(), endpointId).length > 0;
  }

  private async ask(url: string, servedModel: string): Promise<ModelTensors | undefined> {
    const { pathname } = new URL(url);
    const path = `${pathname.replace(/\/$/, '')}/v2/models/${encodeURIComponent(servedModel)}`;
    const end = await callTensorEngine(this.clients.pool(url), { method: 'GET', path }, { signal: new AbortController().signal, timeoutMs: DESCRIBE_TIMEOUT_MS });
    if (end.kind !== 'answered' || end.reply.status !== 200) return undefined;
    const model = tensorModel.safeParse(parsed(Buffer.from(end.reply.body).toString('utf8')));
    return model.success ? { inputs: model.data.inputs, outputs: model.data.outputs } : undefined;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
