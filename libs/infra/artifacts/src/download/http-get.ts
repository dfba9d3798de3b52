import { Agent, request, type Dispatcher } from 'undici';
import type { RemoteFile } from './remote-file.js';

const REDIRECTS_MAX = 5;
const CONNECT_TIMEOUT_MS = 10_000;
const HEADERS_TIMEOUT_MS = 30_000;
/** A download that delivers nothing for this long is cut and resumed. */
const STALL_TIMEOUT_MS = 60_000;
const REDIRECT_STATUSES = [301, 302, 303, 307, 308];

const dispatcher = new Agent({ headersTimeout: HEADERS_TIMEOUT_MS, bodyTimeout: STALL_TIMEOUT_MS, connectTimeout: CONNECT_TIMEOUT_MS });

/** A status that is no success. `isFinal` when asking again would bring the same. */
export class HttpStatusError extends Error {
  override readonly name = 'HttpStatusError';
  constructor(readonly status: number, url: string) {
    super(`${new URL(url).host} answered ${status}${status === 401 || status === 403 ? ' (is the repository private? set HF_TOKEN)' : ''}`);
  }

  get isFinal(): boolean {
    return this.status >= 400 && this.status < 500 && this.status !== 408 && this.status !== 429;
  }
}

export interface HttpBody {
  readonly status: 200 | 206 | 416;
  readonly body: Dispatcher.ResponseData['body'];
  /** A strong validator for `If-Range`. */
  readonly etag: string | undefined;
  /** Bytes of the whole file, where the server says. */
  readonly totalBytes: number | undefined;
  /** Bytes of this body. */
  readonly contentBytes: number | undefined;
  /** First byte of a 206. */
  readonly rangeStart: number | undefined;
  /** sha256 that a hub announces for the file. */
  readonly announcedSha256: string | undefined;
}

/** Gets a file from `offset` on, following redirects by hand so that credentials stay with their host. */
export async function httpGet(file: RemoteFile, offset: number, etag: string | undefined, signal: AbortSignal): Promise<HttpBody> {
  let url = file.url;
  let announcedSha256: string | undefined;
  for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects += 1) {
    const isSameOrigin = new URL(url).origin === new URL(file.url).origin;
    const response = await request(url, {
      dispatcher, signal, method: 'GET',
      headers: {
        'accept-encoding': 'identity', 'user-agent': 'penstock',
        ...(isSameOrigin ? file.headers : {}),
        ...(offset > 0 && etag !== undefined ? { range: `bytes=${offset}-`, 'if-range': etag } : {}),
      },
    });
    const linked = headerOf(response, 'x-linked-etag');
    announcedSha256 ??= linked === undefined ? undefined : /^"?([0-9a-f]{64})"?$/.exec(linked)?.[1];
    const location = headerOf(response, 'location');
    if (REDIRECT_STATUSES.includes(response.statusCode) && location !== undefined) {
      await response.body.dump();
      url = new URL(location, url).href;
      continue;
    }
    return readHead(response, url, announcedSha256);
  }
  throw new Error(`${new URL(file.url).host} redirected more than ${REDIRECTS_MAX} times`);
}

async function readHead(response: Dispatcher.ResponseData, url: string, announcedSha256: string | undefined): Promise<HttpBody> {
  const { statusCode, body } = response;
  if (statusCode !== 200 && statusCode !== 206 && statusCode !== 416) {
    await body.dump();
    throw new HttpStatusError(statusCode, url);
  }
  const range = /^bytes (?:(\d+)-\d+|\*)\/(\d+)$/.exec(headerOf(response, 'content-range') ?? '');
  const length = headerOf(response, 'content-length');
  const contentBytes = length === undefined ? undefined : Number(length);
  const etag = headerOf(response, 'etag');
  return {
    status: statusCode, body, contentBytes, announcedSha256,
    etag: etag?.startsWith('W/') === true ? undefined : etag,
    totalBytes: statusCode === 200 ? contentBytes : range?.[2] === undefined ? undefined : Number(range[2]),
    rangeStart: range?.[1] === undefined ? undefined : Number(range[1]),
  };
}

function headerOf(response: Dispatcher.ResponseData, name: string): string | undefined {
  const value = response.headers[name];
  return Array.isArray(value) ? value[0] : value;
}
