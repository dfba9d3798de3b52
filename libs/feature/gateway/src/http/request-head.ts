/** A head of a POST that can be read in one way only. */
export interface RequestHead {
  /** As it was sent, with its query. */
  readonly path: string;
  /** Names in lower case; each occurs once. */
  readonly headers: Readonly<Record<string, string>>;
  /** In bytes. */
  readonly contentLength: number;
}

const METHOD = 'POST ';
const VERSION = ' HTTP/1.1';
/** RFC 9110, section 5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~\w]+$/;
/** What may not stand in a field (RFC 9110, section 5.5), line breaks apart. */
const FORBIDDEN = /[^\t\r\n\x20-\x7e\x80-\xff]/;
/** Half of a line break. */
const BROKEN_LINE = /\r[^\n]|[^\r]\n|\r$/;
const LENGTH = /^\d{1,15}$/;
/** These change where the request ends, or what is to be answered first. */
const LEFT_TO_NODE: ReadonlySet<string> = new Set(['transfer-encoding', 'expect', 'upgrade', 'trailer', 'te', 'proxy-connection', 'http2-settings']);

/**
 * Reads the head of an HTTP/1.1 request (RFC 9112) without its last empty line, as Latin-1. Undefined for everything but the
 * plainest POST with a host and one length: that is left to Node's parser, whose answer to it is the right one.
 */
export function readRequestHead(head: string): RequestHead | undefined {
  const lineEnd = head.indexOf('\r\n');
  if (lineEnd < 0 || !head.startsWith(METHOD) || FORBIDDEN.test(head) || BROKEN_LINE.test(head)) return undefined;
  const pathEnd = lineEnd - VERSION.length;
  if (!head.startsWith(VERSION, pathEnd)) return undefined;
  const headers: Record<string, string> = {};
  for (let at = lineEnd + 2; at < head.length;) {
    const found = head.indexOf('\r\n', at);
    const end = found < 0 ? head.length : found;
    const colon = head.indexOf(':', at);
    if (colon < 0 || colon >= end) return undefined;
    const name = head.slice(at, colon).toLowerCase();
    if (!TOKEN.test(name) || name in headers || LEFT_TO_NODE.has(name)) return undefined;
    headers[name] = withoutBlanks(head, colon + 1, end);
    at = end + 2;
  }
  const { host, connection = 'keep-alive', 'content-length': length = '' } = headers;
  if (host === undefined || !LENGTH.test(length) || connection.toLowerCase() !== 'keep-alive') return undefined;
  return { path: head.slice(METHOD.length, pathEnd), headers, contentLength: Number(length) };
}

/** A field's value between spaces and tabs: only these are blanks there (RFC 9110, section 5.6.3), whatever else JavaScript trims. */
function withoutBlanks(head: string, start: number, end: number): string {
  let first = start;
  let last = end;
  while (first < last && isBlank(head.charCodeAt(first))) first += 1;
  while (last > first && isBlank(head.charCodeAt(last - 1))) last -= 1;
  return head.slice(first, last);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
