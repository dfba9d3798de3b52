import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Exchange, type Engine } from './exchange.js';
import { parseFault, type Fault } from './fault.js';
import type { SimOptions } from './options.js';
import { engineBusyBody, engineDiedBody, errorBody, invalidShape, SimError } from './sim-error.js';
import { parseJson, readChatRequest, readCompletionsRequest, readTokenizeRequest, type SimRequest } from './sim-request.js';
import { SimMetrics, type AdaptersInUse } from './sim-metrics.js';
import { Slots } from './slots.js';
import { TimedEngine } from './timed-engine.js';
import { TruthLedger } from './truth-ledger.js';
import { modelList, SIM_VERSION } from './wire.js';

const BODY_BYTES_MAX = 64 * 1_024 * 1_024;
/** As vLLM: an idle connection is closed after five seconds. */
const KEEP_ALIVE_MS = 5_000;
const REQUEST_ID_MAX = 256;

export interface RunningSim {
  readonly url: string;
  /** Fails what is in flight as vLLM does when it is told to stop, then closes. Safe to call twice. */
  close(): Promise<void>;
}

export async function startSim(options: SimOptions): Promise<RunningSim> {
  const sim = new SimServer(options);
  return sim.listen();
}

class SimServer implements Engine {
  readonly slots: Slots;
  readonly metrics: SimMetrics;
  readonly ledger: TruthLedger;
  readonly timed: TimedEngine | undefined;
  private readonly server: Server;
  private readonly exchanges = new Set<Exchange>();
  private readonly created = Math.floor(Date.now() / 1_000);
  private fault: Fault | undefined;
  private closing: Promise<void> | undefined;

  constructor(readonly options: SimOptions) {
    this.slots = new Slots(options['max-num-seqs']);
    const timingModel = options['timing-model'];
    this.timed = timingModel === undefined ? undefined : new TimedEngine(options, timingModel, () => this.failAll());
    this.metrics = new SimMetrics(options, this.slots, this.timed, () => this.adaptersInUse());
    this.ledger = new TruthLedger(options.ledger);
    if (options['fault-injection']) this.fault = parseFault(options.fault);
    this.server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) => void this.answer(request, response));
  }

  async listen(): Promise<RunningSim> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.server.once('error', reject);
    this.server.listen(this.options.port, this.options.host, resolve);
    await promise;
    return { url: `http://${this.options.host}:${(this.server.address() as AddressInfo).port}`, close: () => (this.closing ??= this.close()) };
  }

  private async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    this.failAll();
    this.timed?.kvEvents.close();
    await Promise.all([...this.exchanges].map((exchange) => exchange.finished));
    // What was answered is with the kernel by now; connections that a client opened ahead of need would hold the process for seconds.
    this.server.closeAllConnections();
    await closed;
    this.ledger.close();
  }

  private failAll(): void {
    for (const exchange of this.exchanges) exchange.fail();
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await this.route(request, response);
    } catch (error) {
      if (response.headersSent || response.destroyed) return void response.destroy();
      const { status, body } = error instanceof SimError ? error : new SimError(500, errorBody('Internal server error', 'InternalServerError', null, 500));
      sendJson(response, status, body);
    }
  }

  private async route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '/').split('?')[0] ?? '/';
    const method = path in routeMethods ? routeMethods[path as keyof typeof routeMethods] : undefined;
    if (method === undefined || (path === '/sim/fault' && !this.options['fault-injection'])) throw new SimError(404, { detail: 'Not Found' });
    if (request.method !== method) throw new SimError(405, { detail: 'Method Not Allowed' });
    if (method === 'GET') return this.answerGet(path, response);
    const body = parseJson(await readBody(request));
    switch (path) {
      case '/v1/chat/completions': return this.generate(readChatRequest(body, this.options), 'chatcmpl', request, response);
      case '/v1/completions': return this.generate(readCompletionsRequest(body, this.options), 'cmpl', request, response);
      case '/sim/fault': {
        this.fault = parseFault((body as { fault?: string } | null)?.fault);
        return sendJson(response, 200, { fault: this.fault ?? null });
      }
      default: {
        const tokens = readTokenizeRequest(body);
        return sendJson(response, 200, { count: tokens.length, max_model_len: this.options['max-model-len'], tokens, token_strs: null });
      }
    }
  }

  private async answerGet(path: string, response: ServerResponse): Promise<void> {
    switch (path) {
      case '/kv_events': {
        if (this.timed === undefined) throw new SimError(404, { detail: 'Not Found' });
        if (!this.timed.kvEvents.add(response)) throw new SimError(503, engineBusyBody);
        return;
      }
      case '/version': return sendJson(response, 200, { version: SIM_VERSION });
      case '/load': return sendJson(response, 200, { server_load: 0 });
      case '/v1/models': return sendJson(response, 200, modelList(this.options.model, this.options['lora-modules'], this.created, this.options['max-model-len']));
      case '/metrics': {
        const text = await this.metrics.text();
        response.writeHead(200, { 'content-type': 'text/plain; version=1.0.0; charset=utf-8' }).end(text);
        return;
      }
      default:
        response.writeHead(this.timed?.dead === true ? 503 : 200, { 'content-length': 0 }).end();
    }
  }

  private async generate(request: SimRequest, prefix: string, incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const fault = this.faultOf(incoming);
    const limit = this.options['max-num-queued-reqs'];
    if (this.timed?.dead === true) throw new SimError(500, engineDiedBody);
    if (fault?.kind === 'refuse' || (limit > 0 && this.exchanges.size >= limit)) throw new SimError(503, engineBusyBody);
    const header = incoming.headers['x-request-id'];
    const requestId = (typeof header === 'string' && header !== '' ? header : (request.requestId ?? randomBytes(8).toString('hex'))).slice(0, REQUEST_ID_MAX);
    const head = { id: `${prefix}-${requestId}`, created: Math.floor(Date.now() / 1_000), model: request.adapter ?? this.options.model };
    const exchange = new Exchange(this, request, head, requestId, fault, response);
    this.exchanges.add(exchange);
    try {
      await exchange.run(incoming);
      await exchange.finished;
    } finally {
      this.exchanges.delete(exchange);
    }
  }

  private adaptersInUse(): AdaptersInUse {
    const named = [...new Set([...this.exchanges].flatMap(({ adapter }) => adapter ?? []))];
    // Without a timing model every adapter is there at once.
    const resident = this.timed?.metrics().residentAdapters ?? named;
    return { running: named.filter((adapter) => resident.includes(adapter)), waiting: named.filter((adapter) => !resident.includes(adapter)) };
  }

  private faultOf(incoming: IncomingMessage): Fault | undefined {
    if (!this.options['fault-injection']) return undefined;
    const header = incoming.headers['x-sim-fault'];
    return typeof header === 'string' ? parseFault(header) : this.fault;
  }
}

const routeMethods = {
  '/health': 'GET', '/ping': 'GET', '/version': 'GET', '/load': 'GET', '/metrics': 'GET', '/v1/models': 'GET', '/kv_events': 'GET',
  '/v1/chat/completions': 'POST', '/v1/completions': 'POST', '/tokenize': 'POST', '/sim/fault': 'POST',
} as const;

async function readBody(request: IncomingMessage): Promise<string> {
  const type = request.headers['content-type'];
  if (type !== undefined && !type.startsWith('application/json')) throw invalidShape("Unsupported Media Type: Only 'application/json' is allowed", 'content-type');
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += (chunk as Buffer).length;
    if (bytes > BODY_BYTES_MAX) throw new SimError(413, { detail: 'Request body too large' });
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }).end(text);
}
