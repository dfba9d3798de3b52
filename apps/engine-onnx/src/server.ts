import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { HEAD_LENGTH_HEADER } from '@penstock/domain-serving';
import { errorReply, infer, type InferenceParts, type InferenceReply } from './inference.js';
import { OnnxMetrics } from './onnx-metrics.js';
import { OnnxModel } from './onnx-model.js';
import { loadOnnxRuntime } from './onnx-runtime.js';
import type { OnnxOptions } from './options.js';
import { WorkQueue } from './work-queue.js';

const BODY_BYTES_MAX = 256 * 1_024 * 1_024;
/** Longer than a gateway keeps a connection, so that it is never the one surprised. */
const KEEP_ALIVE_MS = 5_000;
const VERSION = '0.1.0';

export interface OnnxServer {
  readonly url: string;
  /** Takes no more requests, finishes what runs, and ends. */
  close(): Promise<void>;
}

/** Loads the model, then listens: whoever gets an answer gets it from a loaded model. Throws when either fails. */
export async function startOnnxServer(options: OnnxOptions): Promise<OnnxServer> {
  const model = await OnnxModel.load(await loadOnnxRuntime(options.runtime), options['model-path'], options.threads);
  const queue = new WorkQueue(options.slots, options['queue-max']);
  const metrics = new OnnxMetrics(queue);
  const parts: InferenceParts = { model, queue, metrics, identity: { name: options['model-name'], version: options['model-version'] } };
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) => {
    answer(request, parts).then(
      (reply) => send(response, reply),
      (error: unknown) => {
        process.stderr.write(`request failed: ${error instanceof Error ? error.message : String(error)}\n`);
        send(response, errorReply(500, 'internal error'));
      },
    );
  });
  server.listen(options.port, options.host);
  await once(server, 'listening');
  return { url: `http://${options.host}:${(server.address() as AddressInfo).port}`, close: () => close(server, model) };
}

async function close(server: Server, model: OnnxModel): Promise<void> {
  server.close();
  server.closeIdleConnections();
  await once(server, 'close');
  await model.close();
}

type Reply = InferenceReply & { readonly text?: string };

async function answer(request: IncomingMessage, parts: InferenceParts): Promise<Reply> {
  const [path = ''] = (request.url ?? '').split('?');
  if (request.method === 'POST') return post(path, request, parts);
  if (request.method !== 'GET') return errorReply(405, 'Method Not Allowed');
  const { identity, metrics, model } = parts;
  switch (partOf(path, identity)) {
    case 'server': return found({ name: 'penstock-onnx', version: VERSION, extensions: ['binary_tensor_data', 'parameters'] });
    case 'alive': return { status: 200, head: '', binary: [] };
    case 'metrics': return { status: 200, head: '', binary: [], text: await metrics.registry.metrics() };
    case 'model': return found({ name: identity.name, versions: [identity.version], platform: 'onnxruntime', inputs: model.tensors.inputs, outputs: model.tensors.outputs });
    default: return errorReply(404, path.startsWith('/v2/models/') ? 'Request for unknown model or version' : 'Not Found');
  }
}

async function post(path: string, request: IncomingMessage, parts: InferenceParts): Promise<Reply> {
  if (partOf(path, parts.identity) !== 'infer') return errorReply(404, 'Request for unknown model or version');
  const body = await readBody(request);
  if (body === undefined) return errorReply(413, `the body is larger than ${BODY_BYTES_MAX} bytes`);
  const header = request.headers[HEAD_LENGTH_HEADER];
  return infer(body, typeof header === 'string' ? header : undefined, parts);
}

type PathPart = 'server' | 'alive' | 'metrics' | 'model' | 'infer' | undefined;

function partOf(path: string, { name, version }: InferenceParts['identity']): PathPart {
  if (path === '/v2') return 'server';
  if (path === '/metrics') return 'metrics';
  if (path === '/health' || path === '/v2/health/live' || path === '/v2/health/ready') return 'alive';
  const model = `/v2/models/${encodeURIComponent(name)}`;
  const rest = [`${model}/versions/${encodeURIComponent(version)}`, model].filter((prefix) => path === prefix || path.startsWith(`${prefix}/`)).map((prefix) => path.slice(prefix.length))[0];
  if (rest === '') return 'model';
  if (rest === '/ready') return 'alive';
  return rest === '/infer' ? 'infer' : undefined;
}

function found(value: unknown): Reply {
  return { status: 200, head: JSON.stringify(value), binary: [] };
}

async function readBody(request: IncomingMessage): Promise<Uint8Array | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += (chunk as Buffer).length;
    if (bytes > BODY_BYTES_MAX) return undefined;
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}

function send(response: ServerResponse, { status, head, binary, text }: Reply): void {
  const parts = [Buffer.from(text ?? head), ...binary];
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const type = text !== undefined ? 'text/plain; version=0.0.4' : binary.length > 0 ? 'application/octet-stream' : 'application/json';
  response.writeHead(status, {
    'content-type': type, 'content-length': String(length), ...(binary.length > 0 ? { 'Inference-Header-Content-Length': String(Buffer.byteLength(head)) } : {}),
    // What is left of a body that was too long cannot be told from a next request.
    ...(status === 413 ? { connection: 'close' } : {}),
  });
  for (const part of parts) response.write(part);
  response.end();
}
