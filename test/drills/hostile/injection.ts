import { HOSTILE_CONTENT } from '../../platform/engine-behaviours.js';
import { scripted } from '../../platform/scripted-engine.js';
import { askChat } from './ask.js';
import { MODEL, type Attack } from './attack.js';
import { sendRaw } from './raw-http.js';

const LEAKED_HEADERS = /^(set-cookie|access-control-allow-origin|x-engine-secret|server|x-powered-by):/im;

/** Output of a model that would break out of the stream, and headers of an engine that would reach the client. */
export async function injection(attack: Attack): Promise<void> {
  attack.say('injection through the output of a model');
  const { installation, attacker } = attack;
  const port = installation.settings.gatewayPort;
  // Waits until the gateway sheds nothing any more.
  await askChat(attack, attacker.key, 'Are you there?');
  for (const stream of [true, false]) {
    const body = JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: scripted('inject', 'x') }], max_tokens: 64, stream });
    const answer = await sendRaw(port, `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${attacker.key}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`);
    const [head = ''] = answer.text.split('\r\n\r\n');
    const leaked = LEAKED_HEADERS.exec(head)?.[0];
    attack.attempt('injection', `headers of the engine, ${stream ? 'streamed' : 'whole'}`, leaked === undefined ? undefined : `the client got ${leaked}`);
    attack.attempt('injection', `one answer, ${stream ? 'streamed' : 'whole'}`, answer.statuses.length === 1 ? undefined : `statuses ${answer.statuses.join(', ')}`);
    const ids = new Set([...head.matchAll(/^x-request-id: (.*)$/gim)].map((match) => match[1]?.trim()));
    attack.attempt('injection', `the request id is ours, ${stream ? 'streamed' : 'whole'}`, ids.size === 1 && !ids.has('engine-made') ? undefined : [...ids].join(', '));
  }
  await contents(attack);
  await echoedWords(attack);
}

/** Each piece of content comes back as it was, in one frame of its own kind. */
async function contents(attack: Attack): Promise<void> {
  const { text } = await askChat(attack, attack.attacker.key, scripted('inject', 'x'), { stream: true });
  const frames = text.split('\n\n').filter((frame) => frame !== '');
  const got: string[] = [];
  for (const [index, frame] of frames.entries()) {
    const isLast = index === frames.length - 1;
    const isPlain = frame.startsWith('data: ') && !/[\r\n\u0000]/.test(frame);
    let chunk: { id?: string; model?: string; choices?: { delta?: { content?: string | null } }[] } | undefined;
    try {
      chunk = isPlain && frame !== 'data: [DONE]' ? (JSON.parse(frame.slice('data: '.length)) as typeof chunk) : undefined;
    } catch {
      chunk = undefined;
    }
    const isFrame = isLast ? frame === 'data: [DONE]' : chunk !== undefined;
    attack.attempt('injection', `frame ${index}`, isFrame ? undefined : `stray frame ${JSON.stringify(frame.slice(0, 100))}`);
    if (chunk !== undefined && (!/^chatcmpl-\w+$/.test(chunk.id ?? '') || chunk.model !== MODEL)) attack.attempt('injection', `identity of frame ${index}`, `id ${chunk.id ?? ''}, model ${chunk.model ?? ''}`);
    const content = chunk?.choices?.[0]?.delta?.content;
    if (content !== undefined && content !== null && content !== '') got.push(content);
  }
  for (const [index, content] of HOSTILE_CONTENT.entries()) {
    attack.attempt('injection', `content ${JSON.stringify(content)}`, got[index] === content ? undefined : `came as ${JSON.stringify(got[index])}`);
  }
}

/** What a client sends comes back in error messages: as JSON, never as a header or markup. */
async function echoedWords(attack: Attack): Promise<void> {
  const port = attack.installation.settings.gatewayPort;
  for (const word of ['%0d%0aset-cookie:%20a=b', '<script>alert(1)</script>', '%22%7D', '..%2f..%2fetc%2fpasswd', '%E2%80%A8']) {
    const answer = await sendRaw(port, `GET /v1/models/${word} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${attack.attacker.key}\r\nConnection: close\r\n\r\n`);
    const [head = '', ...rest] = answer.text.split('\r\n\r\n');
    const isSafe = !/^set-cookie/im.test(head) && /^content-type: application\/json/im.test(head) && !rest.join('').includes('root:');
    attack.attempt('injection', `GET /v1/models/${word}`, isSafe || answer.statuses[0] === 400 ? undefined : answer.text.slice(0, 200));
  }
}
