import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { scripted } from '../../platform/scripted-engine.js';
import { askChat } from './ask.js';
import { MODEL, type Attack } from './attack.js';

/** Long enough for whoever was tricked into fetching to have fetched. */
const FETCH_WAIT_MS = 3_000;

/** Every way to write an address inside, as far as parsers are known to differ on it. */
function innerUrls(port: number): readonly string[] {
  const hosts = [
    '127.0.0.1', 'localhost', 'LOCALHOST', 'localhost.', '0.0.0.0', '0', '127.1', '127.0.1', '2130706433', '0x7f000001', '0x7f.0.0.1', '0177.0.0.1', '017700000001', '127.000.000.001', '[::1]', '[::]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]',
    '[0:0:0:0:0:ffff:127.0.0.1]', '[64:ff9b::7f00:1]', '①②⑦.⓪.⓪.①', '127。0。0。1', 'user@127.0.0.1', 'example.com@127.0.0.1', '127.0.0.1#@example.com', '127.0.0.1%2523', '169.254.169.254', '[fd00:ec2::254]', 'metadata.google.internal', '10.0.0.1', '192.168.0.1', '172.16.0.1', '100.100.100.200',
  ];
  const http = hosts.map((host) => `http://${host}:${port}/sink`);
  return [
    ...http, `https://127.0.0.1:${port}/sink`, `HTTP://127.0.0.1:${port}/sink`, ` http://127.0.0.1:${port}/sink`, `\thttp://127.0.0.1:${port}/sink`, `http:\\\\127.0.0.1:${port}\\sink`, `http:/127.0.0.1:${port}/sink`, `//127.0.0.1:${port}/sink`, `http:127.0.0.1:${port}/sink`,
    'file:///etc/passwd', 'file://localhost/etc/passwd', 'FILE:///etc/passwd', '/etc/passwd', '../../etc/passwd', `gopher://127.0.0.1:${port}/_x`, `ftp://127.0.0.1:${port}/`, `dict://127.0.0.1:${port}/`, `ws://127.0.0.1:${port}/`, `redis://127.0.0.1:${port}/`,
    `jar:http://127.0.0.1:${port}!/`, `netdoc:///etc/passwd`, `view-source:http://127.0.0.1:${port}/`, `blob:http://127.0.0.1:${port}/x`, `javascript:fetch("http://127.0.0.1:${port}")`, `data:text/html,<img src=http://127.0.0.1:${port}/sink>`, 's3://bucket/x', `unix:/var/run/docker.sock`,
  ];
}

/** Addresses inside the network, put wherever a URL is taken: nobody of ours may go there. */
export async function requestForgery(attack: Attack): Promise<void> {
  attack.say('addresses inside the network');
  let hits = 0;
  const sink = createServer((_request, response) => {
    hits += 1;
    response.end('hit');
  });
  await new Promise<void>((resolve) => sink.listen(0, '127.0.0.1', resolve));
  const { port } = sink.address() as AddressInfo;
  try {
    for (const url of innerUrls(port)) {
      await inContent(attack, url);
      await inInput(attack, url);
      await asArtifact(attack, url, () => hits);
    }
    await pause(FETCH_WAIT_MS);
    attack.attempt('forgery', 'requests that reached the sink', hits === 0 ? undefined : `${hits} hits`);
  } finally {
    await closed(sink);
  }
}

async function inContent(attack: Attack, url: string): Promise<void> {
  const { engine, attacker } = attack;
  const parts = [
    { type: 'image_url', image_url: { url } }, { type: 'image_url', image_url: url }, { type: 'audio_url', audio_url: { url } }, { type: 'video_url', video_url: { url } }, { type: 'input_image', image_url: url }, { type: 'file', file: { file_url: url } }, { type: 'file_url', file_url: { url } },
  ];
  for (const [index, part] of parts.entries()) {
    const marker = `ssrf-${index}`;
    const seenBefore = engine.seen.length;
    const answer = await askChat(attack, attacker.key, [{ type: 'text', text: scripted('answer', marker) }, part]);
    const reached = engine.seen.slice(seenBefore).some((request) => JSON.stringify(request.body).includes(JSON.stringify(url).slice(1, -1)));
    const isData = /^data:/i.test(url);
    attack.attempt('forgery', `${part.type} ${url}`, answer.status >= 500 ? `status ${answer.status}` : reached && !isData ? 'the engine was given the address' : undefined);
  }
}

/** The same in the form of the Responses API. */
async function inInput(attack: Attack, url: string): Promise<void> {
  const { installation, engine, attacker } = attack;
  for (const part of [{ type: 'input_image', image_url: url }, { type: 'input_file', file_url: url }]) {
    const seenBefore = engine.seen.length;
    const answer = await fetch(`${installation.url}/v1/responses`, {
      method: 'POST', headers: { authorization: `Bearer ${attacker.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: MODEL, input: [{ role: 'user', content: [{ type: 'input_text', text: scripted('answer', 'ssrf-input') }, part] }], max_output_tokens: 16 }),
    });
    await answer.text();
    const reached = engine.seen.slice(seenBefore).some((request) => JSON.stringify(request.body).includes(JSON.stringify(url).slice(1, -1)));
    attack.attempt('forgery', `${part.type} of a response ${url}`, answer.status >= 500 ? `status ${answer.status}` : reached && !/^data:/i.test(url) ? 'the engine was given the address' : undefined);
  }
}

/** An inference key may deploy nothing. An organisation's admin key may, but from nowhere inside, and from no disk of ours. */
async function asArtifact(attack: Attack, url: string, hits: () => number): Promise<void> {
  const { installation, attacker } = attack;
  for (const artifact of [url, `attach+${url}`]) {
    for (const [who, key] of [['an inference key', attacker.key], ['an admin key of an organisation', attacker.adminKey]] as const) {
      const before = hits();
      const answer = await fetch(`${installation.url}/v1/models/deploy`, {
        method: 'POST', headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model_name: 'forged', model_artifact: artifact, framework: artifact.startsWith('attach+') ? 'vllm' : 'llama.cpp' }),
      });
      await answer.text();
      const taken = answer.status < 400 ? `status ${answer.status}` : answer.status >= 500 ? `status ${answer.status}` : undefined;
      attack.attempt('forgery', `deploy ${artifact} with ${who}`, hits() > before ? 'it was fetched' : taken);
    }
  }
}

function closed(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}
