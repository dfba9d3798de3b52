import { Inject, Injectable } from '@nestjs/common';
import type { InferRequest, TensorModel } from '@penstock/contract-http';
import { checkInfer, HEAD_LENGTH_HEADER, readInfer } from '@penstock/domain-serving';
import { assert } from '@penstock/kernel';
import { CHAT_PARTS, type ChatParts } from '../chat/chat-parts.js';
import type { GatewayViews } from '../gateway-views.js';
import { RequestFault } from '../http/request-fault.js';
import { ANSWERED, onRoute, type RouteCall, type RouteGroup } from '../http/route-call.js';
import { noTokens } from '../limits/limited-call.js';
import type { TokenEstimate } from '../limits/request-limits.js';
import { GATEWAY_VIEWS } from '../tokens.js';
import { ModelDesk } from '../frame/model-desk.js';
import type { ModelWork, UsageLedger, WorkStart } from '../frame/model-work.js';
import { TensorExchange, type InferAnswer } from './tensor-exchange.js';
import type { TensorJob } from './tensor-job.js';
import { TensorMetrics } from './tensor-metrics.js';
import { TensorModels } from './tensor-models.js';

const SERVER = { name: 'penstock', version: '0.1.0', extensions: ['binary_tensor_data', 'parameters'] };

/** The Open Inference Protocol, version 2, over HTTP. */
@Injectable()
export class TensorRoutes implements RouteGroup, ModelWork<TensorJob, RouteCall> {
  readonly name = 'infer';
  private readonly models: TensorModels;
  private readonly metrics: TensorMetrics;
  readonly handlers = [
    onRoute('GET /v2', () => Promise.resolve(SERVER)),
    // A gateway that stops refuses every request before it comes here.
    onRoute('GET /v2/health/live', (call) => sayYes(call)),
    onRoute('GET /v2/health/ready', (call) => sayYes(call)),
    ...['/v2/models/{model_name}', '/v2/models/{model_name}/versions/{model_version}'].flatMap((path) => [
      onRoute(`GET ${path}`, (call) => this.describe(call)),
      onRoute(`GET ${path}/ready`, (call) => this.ready(call)),
      onRoute(`POST ${path}/infer`, (call) => this.desk.serve(call, this), { readsBody: true }),
    ]),
  ];

  constructor(@Inject(ModelDesk) private readonly desk: ModelDesk, @Inject(GATEWAY_VIEWS) views: GatewayViews, @Inject(CHAT_PARTS) private readonly parts: ChatParts) {
    this.models = new TensorModels(views, parts.clients, parts.clock);
    this.metrics = new TensorMetrics(parts.metrics.registry);
  }

  private async describe(call: RouteCall): Promise<TensorModel> {
    const { endpoint, version } = this.find(call);
    const { inputs, outputs } = await this.models.describe(endpoint);
    return { name: endpoint.name, versions: call.params['model_version'] === undefined ? [...this.models.versions(endpoint.name, call)] : [version], platform: endpoint.engine === 'onnx' ? 'onnxruntime' : 'triton', inputs: [...inputs], outputs: [...outputs] };
  }

  private async ready(call: RouteCall): Promise<typeof ANSWERED> {
    const { endpoint } = this.find(call);
    if (this.models.isReady(endpoint)) return sayYes(call);
    throw new RequestFault({ code: 'model_loading', message: `No replica of '${endpoint.name}' is ready. An inference is held until one is.`, retryAfterMs: 5_000 });
  }

  prepare(call: RouteCall, { startedAtMs, traceparent }: WorkStart): TensorJob {
    const { endpoint, version } = this.find(call);
    const bytes = call.request.body instanceof Uint8Array ? call.request.body : new Uint8Array();
    const header = call.request.headers[HEAD_LENGTH_HEADER];
    const headLength = typeof header === 'string' ? header.trim() : undefined;
    const read = readInfer(bytes, headLength);
    if (read.kind === 'fault') throw new RequestFault(read.fault);
    const check = checkInfer(read.body, this.models.tensorsOf(endpoint));
    if (check.kind === 'fault') throw new RequestFault(check.fault);
    refuseUnknown(endpoint.engine, read.body.request);
    const { requestId, principal, batchId } = call;
    return {
      requestId, principal, batchId, endpoint, version, body: bytes, headLength, inputElements: check.elements, startedAtMs, traceparent, prompt: undefined, metered: 'infer', isStreamed: false,
      priority: this.parts.limits.priority(call, endpoint, undefined),
    };
  }

  estimate(): TokenEstimate {
    return noTokens;
  }

  async carryOut(call: RouteCall, job: TensorJob, ledger: UsageLedger | undefined): Promise<void> {
    assert(ledger !== undefined, 'an inference is metered');
    const exchange = new TensorExchange(this.parts, this.metrics, job, ledger);
    const { raw } = call.reply;
    const onClose = (): void => exchange.leave();
    raw.once('close', onClose);
    if (raw.destroyed) exchange.leave();
    const answer = await exchange.run();
    raw.off('close', onClose);
    if (answer !== undefined) sendAnswer(call, answer);
  }

  private find(call: RouteCall): ReturnType<TensorModels['find']> {
    return this.models.find(call.params['model_name'] ?? '', call.params['model_version'], call);
  }
}

/** Classification is an extension of Triton's. */
function refuseUnknown(engine: string, request: InferRequest): void {
  const index = (request.outputs ?? []).findIndex((output) => output.parameters?.['classification'] !== undefined);
  if (engine === 'triton' || index < 0) return;
  throw new RequestFault({ code: 'unsupported_value', message: 'This model does not classify. Leave the parameter classification out.', param: `outputs[${index}].parameters.classification` });
}

function sayYes(call: RouteCall): Promise<typeof ANSWERED> {
  void call.reply.code(200).send();
  return Promise.resolve(ANSWERED);
}

function sendAnswer({ reply }: RouteCall, { head, binary }: InferAnswer): void {
  if (binary.length === 0) {
    void reply.code(200).type('application/json; charset=utf-8').send(Buffer.from(head.buffer, head.byteOffset, head.byteLength));
    return;
  }
  void reply.code(200).type('application/octet-stream').header('Inference-Header-Content-Length', String(head.length)).send(Buffer.concat([head, binary]));
}
