import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { hostname } from 'node:os';
import { ClickhouseError } from './clickhouse-error.js';
import type { ChdbEngine, EngineResult } from './chdb-engine.js';
import { parseRequest, requireCredentials, type ParsedRequest } from './parse-request.js';
import type { FacadeConfig } from './facade-config.js';

const HEADER_BYTES_MAX = 1_048_576;
const KEEP_ALIVE_MS = 10_000;
const REQUEST_TIMEOUT_MS = 120_000;
const NANOSECONDS_PER_MILLISECOND = 1_000_000;
/** Statements about the session: without a session they end with the request, so there is nothing to do. */
const SESSION_VERBS: ReadonlySet<string> = new Set(['SET', 'USE']);

/** ClickHouse's HTTP interface over an engine. It listens nowhere yet. */
export function createFacadeServer(engine: ChdbEngine, config: FacadeConfig): Server {
  const server = createServer({ maxHeaderSize: HEADER_BYTES_MAX, requestTimeout: REQUEST_TIMEOUT_MS, keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) => {
    void serve(engine, config, request, response);
  });
  return server;
}

async function serve(engine: ChdbEngine, config: FacadeConfig, request: IncomingMessage, response: ServerResponse): Promise<void> {
  response.setHeader('X-ClickHouse-Server-Display-Name', hostname());
  response.setHeader('X-ClickHouse-Timezone', 'UTC');
  try {
    const url = new URL(request.url ?? '/', 'http://localhost');
    if (request.method === 'GET' && url.pathname === '/ping') return void response.end('Ok.\n');
    if (request.method === 'GET' && url.pathname === '/' && url.search === '') return void response.end('Ok.\n');
    if (url.pathname !== '/') return sendError(request, response, ClickhouseError.of(47, 'UNKNOWN_IDENTIFIER', `There is no handle ${url.pathname}`));
    requireCredentials(request, url, config);
    const parsed = await parseRequest(request, url, config.database);
    response.setHeader('X-ClickHouse-Query-Id', parsed.queryId ?? randomUUID());
    const startedMs = performance.now();
    const result = await runParsed(engine, parsed);
    sendResult(response, parsed, result, performance.now() - startedMs);
  } catch (error) {
    sendError(request, response, ClickhouseError.from(error));
  }
}

async function runParsed(engine: ChdbEngine, parsed: ParsedRequest): Promise<EngineResult> {
  const nothing: EngineResult = { bytes: new Uint8Array(0), rowsRead: 0, bytesRead: 0 };
  if (SESSION_VERBS.has(parsed.statement.verb)) return nothing;
  const { insertFormat } = parsed.statement;
  // A server takes an insert of no rows; the library calls it an error.
  if (insertFormat !== undefined && parsed.query.sql.slice(insertFormat.dataOffset).trim() === '') return nothing;
  return engine.run(parsed.query);
}

function sendResult(response: ServerResponse, parsed: ParsedRequest, result: EngineResult, elapsedMs: number): void {
  const isInsert = parsed.statement.verb === 'INSERT';
  response.setHeader('Content-Type', parsed.query.format.startsWith('JSON') ? 'application/json; charset=UTF-8' : 'text/plain; charset=UTF-8');
  response.setHeader('X-ClickHouse-Format', parsed.query.format);
  response.setHeader('X-ClickHouse-Summary', JSON.stringify({
    read_rows: String(isInsert ? 0 : result.rowsRead), read_bytes: String(isInsert ? 0 : result.bytesRead),
    written_rows: String(isInsert ? result.rowsRead : 0), written_bytes: String(isInsert ? result.bytesRead : 0),
    total_rows_to_read: '0', result_rows: '0', result_bytes: String(result.bytes.length),
    elapsed_ns: String(Math.round(elapsedMs * NANOSECONDS_PER_MILLISECOND)),
  }));
  response.end(result.bytes);
}

function sendError(request: IncomingMessage, response: ServerResponse, error: ClickhouseError): void {
  if (response.headersSent || response.destroyed) return void response.destroy();
  // The rest of an oversized body is not read: the connection cannot be used again.
  if (!request.complete) response.setHeader('Connection', 'close');
  response.statusCode = error.status;
  response.setHeader('Content-Type', 'text/plain; charset=UTF-8');
  response.setHeader('X-ClickHouse-Exception-Code', String(error.code));
  response.end(`${error.message}\n`);
}
