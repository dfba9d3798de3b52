import { scripted } from '../../platform/scripted-engine.js';
import { askChat } from './ask.js';
import type { Attack } from './attack.js';
import { sendRaw } from './raw-http.js';

const INNER = 'GET /admin/v1/keys HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer KEY\r\n\r\n';

/** Requests whose end two readers could see in different places. Each hides a second request behind the first. */
function framings(inner: string): readonly (readonly [string, string])[] {
  const head = 'POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n';
  const chunkedEmpty = `0\r\n\r\n${inner}`;
  const length = chunkedEmpty.length;
  return [
    ['CL and TE', `${head}Content-Length: ${length}\r\nTransfer-Encoding: chunked\r\n\r\n${chunkedEmpty}`],
    ['TE and CL', `${head}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n${chunkedEmpty}`],
    ['two lengths', `${head}Content-Length: 0\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`],
    ['two lengths in one', `${head}Content-Length: 0, ${inner.length}\r\n\r\n${inner}`],
    ['a signed length', `${head}Content-Length: +0\r\n\r\n${inner}`],
    ['a negative length', `${head}Content-Length: -1\r\n\r\n${inner}`],
    ['a hexadecimal length', `${head}Content-Length: 0x0\r\n\r\n${inner}`],
    ['an empty length', `${head}Content-Length: \r\n\r\n${inner}`],
    ['a space before the colon', `${head}Content-Length : 0\r\n\r\n${inner}`],
    ['TE with a space before the colon', `${head}Transfer-Encoding : chunked\r\nContent-Length: ${length}\r\n\r\n${chunkedEmpty}`],
    ['an unknown coding', `${head}Transfer-Encoding: xchunked\r\n\r\n${chunkedEmpty}`],
    ['chunked twice', `${head}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n${chunkedEmpty}`],
    ['chunked not last', `${head}Transfer-Encoding: chunked, identity\r\n\r\n${chunkedEmpty}`],
    ['a vertical tab in TE', `${head}Transfer-Encoding: \u000bchunked\r\nContent-Length: ${length}\r\n\r\n${chunkedEmpty}`],
    ['a folded header', `${head}X-Fold: a\r\n Transfer-Encoding: chunked\r\nContent-Length: ${length}\r\nTransfer-Encoding:\r\n chunked\r\n\r\n${chunkedEmpty}`],
    ['a bare line feed', `${head}X: a\nTransfer-Encoding: chunked\r\nContent-Length: ${length}\r\n\r\n${chunkedEmpty}`],
    ['a bare carriage return', `${head}X: a\rTransfer-Encoding: chunked\r\nContent-Length: ${length}\r\n\r\n${chunkedEmpty}`],
    ['a NUL in a value', `${head}X: a\u0000b\r\nContent-Length: 0\r\n\r\n${inner}`],
    ['a NUL in a name', `${head}X\u0000: a\r\nContent-Length: 0\r\n\r\n${inner}`],
    ['a chunk size with a sign', `${head}Transfer-Encoding: chunked\r\n\r\n+0\r\n\r\n${inner}`],
    ['a chunk size with 0x', `${head}Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n${inner}`],
    ['a chunk size that overflows', `${head}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n\r\n${inner}`],
    ['a chunk that ends with a bare line feed', `${head}Transfer-Encoding: chunked\r\n\r\n0\n\n${inner}`],
    ['a chunk extension with a line feed', `${head}Transfer-Encoding: chunked\r\n\r\n0;a\nb\r\n\r\n${inner}`],
    ['no host', `POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 0\r\n\r\n${inner}`],
    ['two hosts', `POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 0\r\n\r\n${inner}`],
    ['HTTP/1.0 with TE', `POST /v1/chat/completions HTTP/1.0\r\nTransfer-Encoding: chunked\r\nContent-Length: ${length}\r\n\r\n${chunkedEmpty}`],
    ['HTTP/0.9', `GET /admin/v1/keys\r\n${inner}`],
    ['HTTP/2 preface', `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${inner}`],
    ['CONNECT', `CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: x\r\n\r\n${inner}`],
    ['TRACE', `TRACE / HTTP/1.1\r\nHost: x\r\n\r\n${inner}`],
    ['upgrade', `GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n${inner}`],
  ];
}

/** Framing that is not plain is refused, and what was hidden behind it is not answered as somebody else's request. */
export async function smuggling(attack: Attack): Promise<void> {
  attack.say('header smuggling');
  const port = attack.installation.settings.gatewayPort;
  for (const [name, bytes] of framings(INNER.replace('KEY', attack.attacker.key))) {
    const answer = await sendRaw(port, Buffer.from(bytes, 'latin1'));
    // The hidden request carries a key without the right, so even where it is read it must be refused; a 2xx or a 5xx is a hole.
    const leak = answer.statuses.find((status) => status < 300 || status >= 500);
    attack.attempt('smuggling', name, leak === undefined ? undefined : `status ${leak} in ${answer.statuses.join(', ')}`);
  }
  await strictFraming(attack, port);
  await spoofedHeaders(attack);
}

/** CL with TE, and two lengths, are refused outright and the connection ends: a proxy in front may have seen another end. */
async function strictFraming(attack: Attack, port: number): Promise<void> {
  const strict = new Set(['CL and TE', 'TE and CL', 'two lengths', 'two lengths in one', 'a signed length', 'a space before the colon', 'TE with a space before the colon', 'chunked not last', 'a NUL in a value', 'a chunk size with 0x']);
  for (const [name, bytes] of framings(INNER.replace('KEY', attack.attacker.key)).filter(([found]) => strict.has(found))) {
    const answer = await sendRaw(port, Buffer.from(bytes, 'latin1'));
    const isRefused = answer.closed && answer.statuses.length > 0 && answer.statuses.every((status) => status >= 400) && answer.statuses.at(-1) === 400;
    attack.attempt('smuggling', `${name} ends the connection`, isRefused ? undefined : `statuses ${answer.statuses.join(', ')}, ${answer.closed ? 'closed' : 'left open'}`);
  }
}

/** What a client says about itself must not reach the engine, nor steer it. */
const SPOOFED: Readonly<Record<string, string>> = {
  'x-request-id': 'req_victim', 'x-tenant': 'victim', 'x-penstock-tenant': '{"organisationId":"org_root"}', 'x-penstock-request-id': 'req_victim', 'x-penstock-internal': 'guess', 'x-sim-fault': 'error-after=0',
  'nats-msg-id': 'x', 'x-priority': '-100', 'x-data-parallel-rank': '0', 'x-kv-cache-salt': 'victim', cookie: 'a=b', 'proxy-authorization': 'Basic x', te: 'trailers', 'x-forwarded-host': 'evil', 'openai-organization': 'org_victim',
  traceparent: 'not-a-trace', baggage: 'user=victim', tracestate: 'x=y',
};
const STEERING: Readonly<Record<string, unknown>> = {
  cache_salt: 'victim', priority: -100, request_id: 'req_victim', kv_transfer_params: { do_remote_prefill: true }, chat_template: '{{ 1 }}', chat_template_kwargs: { a: 1 }, data_parallel_rank: 0, add_special_tokens: false, return_token_ids: true, prompt_logprobs: 20, vllm_xargs: { x: 1 },
};
/** What an engine needs to know, and nothing else. */
const ENGINE_HEADERS: ReadonlySet<string> = new Set(['host', 'connection', 'content-type', 'content-length', 'accept', 'accept-encoding', 'x-request-id', 'traceparent', 'tracestate', 'transfer-encoding', 'user-agent']);

async function spoofedHeaders(attack: Attack): Promise<void> {
  const { engine, attacker } = attack;
  const all = [...Object.entries(SPOOFED).map(([name, value]) => ({ name, headers: { [name]: value }, body: {} })), ...Object.entries(STEERING).map(([name, value]) => ({ name, headers: {}, body: { [name]: value } }))];
  for (const [index, { name, headers, body }] of all.entries()) {
    const marker = `spoof-${index}`;
    const answer = await askChat(attack, attacker.key, scripted('answer', marker), body, headers).catch(() => undefined);
    const seen = engine.seen.find((request) => request.marker === marker);
    attack.attempt('spoofing', name, breachOf(name, headers, body, seen?.headers, seen?.body, answer?.status));
  }
}

function breachOf(name: string, sent: Readonly<Record<string, string>>, body: Readonly<Record<string, unknown>>, headers: Readonly<Record<string, unknown>> | undefined, engineBody: Readonly<Record<string, unknown>> | undefined, status: number | undefined): string | undefined {
  if (status !== undefined && status >= 500) return `status ${status}`;
  // A request that was refused for what it says of itself has not reached the engine.
  if (headers === undefined || engineBody === undefined) return status !== undefined && status < 400 ? 'the engine did not see it, and it was answered' : undefined;
  const foreign = Object.keys(headers).filter((header) => !ENGINE_HEADERS.has(header));
  if (foreign.length > 0) return `the engine got the headers ${foreign.join(', ')}`;
  if (sent[name] !== undefined && headers[name] === sent[name]) return `the engine got the client's ${name}`;
  if (body[name] !== undefined && JSON.stringify(engineBody[name]) === JSON.stringify(body[name])) return `the engine got the client's ${name}`;
  return undefined;
}
