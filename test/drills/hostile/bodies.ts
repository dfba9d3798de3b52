import { deflateSync, gzipSync, brotliCompressSync } from 'node:zlib';
import { setTimeout as pause } from 'node:timers/promises';
import { quantile } from '../data-plane/world.js';
import { MODEL, type Attack } from './attack.js';
import { PathClient, sendRaw } from './raw-http.js';

const MIB = 1_024 * 1_024;
const BOMB_BYTES = 64 * MIB;
const DEEP = 1_000_000;
const MANY = 300_000;

const message = (content: string): string => `{"model":"${MODEL}","max_tokens":2,"messages":[{"role":"user","content":${content}}]}`;

/** Bodies that cost more to read than to send. */
function bodies(): readonly (readonly [string, string | Buffer, Readonly<Record<string, string>>])[] {
  const json = { 'content-type': 'application/json' };
  const bomb = Buffer.alloc(BOMB_BYTES, ' ');
  const small = Buffer.from(message('"hi"'));
  return [
    ['an array a million deep', '['.repeat(DEEP), json],
    ['a closed array a million deep', '['.repeat(DEEP) + ']'.repeat(DEEP), json],
    ['objects a hundred thousand deep', '{"a":'.repeat(100_000), json],
    ['a deep value in a good request', `{"model":"${MODEL}","messages":[],"x":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, json],
    ['very many keys', `{${Array.from({ length: MANY }, (_, index) => `"k${index}":1`).join(',')}}`, json],
    ['very many messages', `{"model":"${MODEL}","messages":[${'{"role":"user","content":"x"},'.repeat(100_000)}{"role":"user","content":"x"}]}`, json],
    ['a larger body than is taken', Buffer.alloc(9 * MIB, 'a'), json],
    ['a very long string', message(JSON.stringify('x'.repeat(7 * MIB))), json],
    ['a number of a million digits', `{"model":"${MODEL}","messages":[],"seed":${'9'.repeat(DEEP)}}`, json],
    ['an infinite number', `{"model":"${MODEL}","messages":[{"role":"user","content":"x"}],"temperature":1e400}`, json],
    ['invalid UTF-8', Buffer.concat([Buffer.from('{"model":"'), Buffer.from([0xff, 0xfe, 0xc0]), Buffer.from('"}')]), json],
    ['a lone surrogate', message('"\\ud800"'), json],
    ['the same key twice', `{"model":"${MODEL}","model":"other","messages":[{"role":"user","content":"x"}]}`, json],
    ['a prototype', `{"model":"${MODEL}","__proto__":{"isAdmin":true},"constructor":{"prototype":{"x":1}},"messages":[{"role":"user","content":"x"}]}`, json],
    ['a NUL', 'null\u0000', json], ['nothing', '', json], ['a string', '"x"', json], ['a number', '1', json], ['null', 'null', json], ['an array', '[]', json],
    ['n of a billion', `{"model":"${MODEL}","n":1000000000,"messages":[{"role":"user","content":"x"}]}`, json],
    ['very many stop strings', `{"model":"${MODEL}","stop":[${'"x",'.repeat(50_000)}"x"],"messages":[{"role":"user","content":"x"}]}`, json],
    ['gzip', gzipSync(small), { ...json, 'content-encoding': 'gzip' }],
    ['a gzip bomb', gzipSync(bomb), { ...json, 'content-encoding': 'gzip' }],
    ['a gzip bomb in a gzip', gzipSync(gzipSync(bomb)), { ...json, 'content-encoding': 'gzip, gzip' }],
    ['a deflate bomb', deflateSync(bomb), { ...json, 'content-encoding': 'deflate' }],
    ['a brotli bomb', brotliCompressSync(bomb.subarray(0, MIB)), { ...json, 'content-encoding': 'br' }],
    ['an unknown encoding', small, { ...json, 'content-encoding': 'x'.repeat(2_000) }],
    ['gzip that says nothing', gzipSync(small), json],
    ['another type', small, { 'content-type': 'text/plain' }], ['a type with a tab', small, { 'content-type': 'application/json\ta' }], ['no type', small, {}], ['another charset', small, { 'content-type': 'application/json; charset=utf-16' }],
    ['a form without an end', '--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n', { 'content-type': 'multipart/form-data; boundary=x' }],
    ['a boundary of two hundred and fifty-two characters', `--${'b'.repeat(252)}\r\n`, { 'content-type': `multipart/form-data; boundary=${'b'.repeat(252)}` }],
    ['very many form fields', Array.from({ length: 5_000 }, (_, index) => `--x\r\nContent-Disposition: form-data; name="f${index}"\r\n\r\n1\r\n`).join('') + '--x--\r\n', { 'content-type': 'multipart/form-data; boundary=x' }],
  ];
}

const TARGETS = ['/v1/chat/completions', '/v1/batches', '/v1/files'] as const;
/** What everybody may ask meanwhile must go on: with loops of milliseconds, a second is a stall. */
const BYSTANDER_P99_MS = 1_000;

/** Bodies that are huge, deep, packed or malformed: 4xx, no fault of ours, and others do not wait. */
export async function bodyAttacks(attack: Attack): Promise<{ readonly bystanderP99Ms: number }> {
  attack.say('giant, deep and packed bodies');
  const port = attack.installation.settings.gatewayPort;
  const client = new PathClient(port);
  // Packing them takes this process a while, in which nobody could watch.
  const packed = bodies();
  const bystander = watchBystander(attack);
  for (const [name, body, headers] of packed) {
    for (const path of TARGETS) {
      const { status } = await client.ask('POST', path, { authorization: `Bearer ${attack.attacker.key}`, ...headers }, body);
      // Zero is a connection that the gateway closed before it had read all: a refusal as well.
      attack.attempt('bodies', `${name} to ${path}`, status >= 500 ? `status ${status}` : undefined);
    }
  }
  const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${attack.attacker.key}\r\nContent-Type: application/json\r\n`;
  const framed: readonly (readonly [string, string])[] = [
    ['a length of an exabyte', `${head}Content-Length: 1000000000000000000\r\n\r\n{`],
    ['headers of a hundred kilobytes', `${head}X: ${'a'.repeat(100_000)}\r\n\r\n`],
    ['ten thousand headers', `${head}${'X-A: b\r\n'.repeat(10_000)}\r\n`],
    ['a path of a hundred kilobytes', `GET /${'a'.repeat(100_000)} HTTP/1.1\r\nHost: x\r\n\r\n`],
    ['chunks without an end', `${head}Transfer-Encoding: chunked\r\n\r\n${`${(65_536).toString(16)}\r\n${' '.repeat(65_536)}\r\n`.repeat(160)}`],
  ];
  for (const [name, bytes] of framed) {
    const answer = await sendRaw(port, bytes);
    const leak = answer.statuses.find((status) => status < 400 || status >= 500);
    attack.attempt('bodies', name, leak === undefined ? undefined : `status ${leak}`);
  }
  client.close();
  const { failed, p99Ms, count } = await bystander();
  attack.attempt('bodies', 'bystanders are served', failed > 0 ? `${failed} of ${count} failed` : undefined);
  attack.attempt('bodies', 'bystanders do not wait', p99Ms > BYSTANDER_P99_MS ? `p99 ${p99Ms.toFixed(0)} ms` : undefined);
  return { bystanderP99Ms: p99Ms };
}

function watchBystander(attack: Attack): () => Promise<{ failed: number; p99Ms: number; count: number }> {
  let running = true;
  const times: number[] = [];
  let failed = 0;
  const work = (async () => {
    while (running) {
      const startedMs = performance.now();
      const answer = await fetch(`${attack.installation.url}/v1/models`, { headers: { authorization: `Bearer ${attack.victim.key}` } }).catch(() => undefined);
      await answer?.text();
      if (answer?.status !== 200) failed += 1;
      times.push(performance.now() - startedMs);
      await pause(10);
    }
  })();
  return async () => {
    running = false;
    await work;
    return { failed, p99Ms: quantile(times, 0.99), count: times.length };
  };
}
