import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { methodsOf } from './path-table.js';
import { isAdminPath } from './send-fault.js';

/** What a page may read of an answer, beside the few headers that every page may. */
const EXPOSED = [
  'x-request-id', 'retry-after', 'retry-after-ms', 'x-should-retry', 'idempotent-replayed', 'x-original-request-id', 'location', 'ratelimit', 'ratelimit-policy', 'openai-processing-ms', 'openai-version', 'openai-organization', 'openai-project',
  ...['limit', 'remaining', 'reset'].flatMap((what) => [`x-ratelimit-${what}-requests`, `x-ratelimit-${what}-tokens`]),
].join(', ');
/** A header's name (RFC 9110, section 5.6.2), of which a page asks for a few dozen at most. */
const NAME = /^[!#$%&'*+\-.^_`|~\w]{1,64}$/;
const NAMES_MAX = 64;
/** Between services of one installation; no page has a use for it. */
const INTERNAL = /^x-penstock-/i;
/** Browsers keep to less: Chromium to two hours. In seconds. */
const MAX_AGE_SECONDS = 7_200;

/**
 * Lets pages of the given origins call the public API (https://fetch.spec.whatwg.org/#http-cors-protocol), as clients in browsers do.
 * No cookie or other credential of the browser is taken, so a page can do what its key can. The admin API is for no page.
 */
export function answerCrossOrigin(instance: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return;
  instance.addHook('onRequest', async (request, reply) => {
    const allowed = allowedOrigin(request, origins);
    if (allowed === undefined) return undefined;
    reply.header('access-control-allow-origin', allowed).header('access-control-expose-headers', EXPOSED);
    if (allowed !== '*') reply.header('vary', 'Origin');
    return request.method === 'OPTIONS' && request.headers['access-control-request-method'] !== undefined ? preflight(request, reply) : undefined;
  });
}

/** The origin that the answer is for; undefined where it is for none. */
function allowedOrigin(request: FastifyRequest, origins: readonly string[]): string | undefined {
  const { origin } = request.headers;
  const url = request.raw.url ?? '';
  if (origin === undefined || isAdminPath(url) || methodsOf(url).length === 0) return undefined;
  if (origins.includes('*')) return '*';
  return origins.includes(origin) ? origin : undefined;
}

/** A browser asks before it sends a key. What is asked for may be sent, since each route looks at what it gets anyway. */
function preflight(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const asked = String(request.headers['access-control-request-headers'] ?? '').split(',', NAMES_MAX).map((name) => name.trim());
  const names = asked.filter((name) => NAME.test(name) && !INTERNAL.test(name));
  return reply.code(204).headers({
    'x-request-id': request.id,
    'access-control-allow-methods': methodsOf(request.raw.url ?? '').join(', '),
    ...(names.length > 0 ? { 'access-control-allow-headers': names.join(', ') } : {}),
    'access-control-max-age': String(MAX_AGE_SECONDS),
    vary: 'Origin, Access-Control-Request-Headers',
  }).send();
}
