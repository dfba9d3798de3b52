import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { createGunzip } from 'node:zlib';
import { ClickhouseError } from './clickhouse-error.js';
import type { EngineQuery } from './chdb-engine.js';
import { isReading, scanStatement, type Statement } from './statement.js';

/** Longest body after decompression; an insert of more rows is sent in parts. */
export const BODY_BYTES_MAX = 64 * 1_048_576;

/** Parameters of the HTTP interface itself; every other one is a setting. */
const INTERFACE_PARAMETERS: ReadonlySet<string> = new Set([
  'query', 'query_id', 'database', 'user', 'password', 'default_format', 'session_id', 'session_timeout', 'session_check', 'wait_end_of_query',
  'buffer_size', 'compress', 'decompress', 'role', 'quota_key', 'stacktrace', 'enable_http_compression', 'http_zlib_compression_level',
  'send_progress_in_http_headers', 'http_headers_progress_interval_ms', 'client_protocol_version', 'close_session',
]);
const SETTING_NAME = /^[a-z][a-z0-9_]{0,127}$/i;
const BINARY_INSERT_FORMATS = /^(native|rowbinary|parquet|arrow|orc|avro|protobuf|msgpack|capnproto|bson|npy|raw)/i;

export interface Credentials {
  readonly user: string;
  readonly password: string;
}

export interface ParsedRequest {
  readonly query: EngineQuery;
  readonly statement: Statement;
  readonly queryId: string | undefined;
}

/** Throws the error of a wrong password unless the request carries the right credentials, in any of ClickHouse's three ways. */
export function requireCredentials(request: IncomingMessage, url: URL, expected: Credentials): void {
  const given = givenCredentials(request, url);
  const isRight = sameText(given.user, expected.user) && sameText(given.password, expected.password);
  if (!isRight) throw ClickhouseError.of(516, 'AUTHENTICATION_FAILED', `${given.user === '' ? 'default' : given.user}: Authentication failed: password is incorrect, or there is no user with such name`);
}

function givenCredentials(request: IncomingMessage, url: URL): Credentials {
  const header = (name: string): string => String(request.headers[name] ?? '');
  const basic = /^Basic (.+)$/i.exec(header('authorization'))?.[1];
  if (basic !== undefined) {
    const text = Buffer.from(basic, 'base64').toString('utf8');
    const colon = text.indexOf(':');
    return { user: text.slice(0, Math.max(colon, 0)), password: text.slice(colon + 1) };
  }
  if (header('x-clickhouse-user') !== '') return { user: header('x-clickhouse-user'), password: header('x-clickhouse-key') };
  return { user: url.searchParams.get('user') ?? '', password: url.searchParams.get('password') ?? '' };
}

function sameText(left: string, right: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(left), digest(right));
}

/** Reads the query, its settings and parameters from the address and the body. */
export async function parseRequest(request: IncomingMessage, url: URL, defaultDatabase: string): Promise<ParsedRequest> {
  const body = request.method === 'GET' ? '' : await readBody(request);
  const inAddress = url.searchParams.get('query') ?? '';
  const sql = inAddress === '' ? body : body === '' ? inAddress : `${inAddress}\n${body}`;
  if (sql.trim() === '') throw ClickhouseError.of(62, 'SYNTAX_ERROR', 'Empty query');
  const statement = scanStatement(sql);
  if (statement.hasMore) throw ClickhouseError.of(62, 'SYNTAX_ERROR', 'Syntax error (Multi-statements are not allowed)');
  if (request.method === 'GET' && !isReading(statement)) throw ClickhouseError.of(164, 'READONLY', 'Cannot execute query in readonly mode. For queries over HTTP, method GET implies readonly. You should use method POST for modifying queries');
  if (statement.insertFormat !== undefined && BINARY_INSERT_FORMATS.test(statement.insertFormat.name)) {
    throw ClickhouseError.of(73, 'UNKNOWN_FORMAT', `The embedded server takes text formats only, not ${statement.insertFormat.name}; send JSONEachRow`);
  }
  const database = header(request, 'x-clickhouse-database') ?? url.searchParams.get('database') ?? defaultDatabase;
  const format = header(request, 'x-clickhouse-format') ?? url.searchParams.get('default_format') ?? 'TabSeparated';
  return { query: { sql, database, format, ...settingsAndParameters(url) }, statement, queryId: url.searchParams.get('query_id') ?? undefined };
}

function header(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function settingsAndParameters(url: URL): Pick<EngineQuery, 'settings' | 'parameters'> {
  const settings: Record<string, string> = {};
  const parameters: Record<string, string | null> = {};
  for (const [name, value] of url.searchParams) {
    if (name.startsWith('param_')) parameters[name.slice('param_'.length)] = value === '\\N' ? null : unescapeText(value);
    else if (INTERFACE_PARAMETERS.has(name)) continue;
    else if (SETTING_NAME.test(name)) settings[name] = value;
    else throw ClickhouseError.of(115, 'UNKNOWN_SETTING', `Unknown setting '${name.slice(0, 128)}'`);
  }
  return { settings, parameters };
}

const ESCAPES: Readonly<Record<string, string>> = { b: '\b', f: '\f', r: '\r', n: '\n', t: '\t', 0: '\0' };

/** Parameters arrive escaped as in TabSeparated; the library escapes them again itself. */
function unescapeText(text: string): string {
  return text.replaceAll(/\\(.)/gs, (_whole, character: string) => ESCAPES[character] ?? character);
}

async function readBody(request: IncomingMessage): Promise<string> {
  const encoding = request.headers['content-encoding'] ?? 'identity';
  if (encoding !== 'identity' && encoding !== 'gzip') throw ClickhouseError.of(36, 'BAD_ARGUMENTS', `Unknown Content-Encoding ${encoding}: send gzip or none`);
  const source: AsyncIterable<Buffer> = encoding === 'gzip' ? request.pipe(createGunzip()) : request;
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of source) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) throw ClickhouseError.of(619, 'TOO_LARGE_BODY', `The body is longer than ${BODY_BYTES_MAX} bytes; send the rows in parts`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
