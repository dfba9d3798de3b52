import { createServer, type Socket } from 'node:net';

// An engine that costs next to nothing: Node's raw sockets, answers made once. Run as a process of its own:
//   node fake-engine.js '{"ports":2}'
// A streamed answer has as many chunks as `max_tokens` says, and `seed` of them a second.

interface EngineOptions {
  readonly ports: number;
}

const options = JSON.parse(process.argv[2] ?? '{}') as EngineOptions;
const EMBEDDING_VALUES = 3_072;
/** Streams are served in so many groups, so that their chunks do not come all at once. */
const GROUPS = 10;
const BODY_KEY = '"stream":true';

const json = (body: string): Buffer => Buffer.from(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
const chatAnswer = json(JSON.stringify({
  id: 'chatcmpl-0123456789abcdef', object: 'chat.completion', created: 1_790_000_000, model: 'bench-model',
  choices: [{ index: 0, message: { role: 'assistant', content: 'A short answer of a model that has nothing to say but says it well. '.repeat(3), refusal: null }, logprobs: null, finish_reason: 'stop' }],
  usage: { prompt_tokens: 21, total_tokens: 63, completion_tokens: 42 },
}));
const embeddingAnswer = json(JSON.stringify({
  object: 'list', model: 'bench-model', data: [{ object: 'embedding', index: 0, embedding: Array.from({ length: EMBEDDING_VALUES }, (_, index) => -0.5 + ((index * 7_919) % 100_003) / 100_003 + 1e-13) }],
  usage: { prompt_tokens: 8, total_tokens: 8 },
}));

const framed = (data: string): string => `${Buffer.byteLength(`data: ${data}\n\n`).toString(16)}\r\ndata: ${data}\n\n\r\n`;
const chunk = (delta: object, finish: string | null, tokens: number): string => framed(JSON.stringify({
  id: 'chatcmpl-0123456789abcdef', object: 'chat.completion.chunk', created: 1_790_000_000, model: 'bench-model',
  choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }], usage: { prompt_tokens: 21, total_tokens: 21 + tokens, completion_tokens: tokens },
}));
const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n';
const framesByLength = new Map<number, readonly Buffer[]>();

function framesOf(tokens: number): readonly Buffer[] {
  const known = framesByLength.get(tokens);
  if (known !== undefined) return known;
  const usage = framed(JSON.stringify({ id: 'chatcmpl-0123456789abcdef', object: 'chat.completion.chunk', created: 1_790_000_000, model: 'bench-model', choices: [], usage: { prompt_tokens: 21, total_tokens: 21 + tokens, completion_tokens: tokens } }));
  const frames = [
    Buffer.from(head + chunk({ role: 'assistant', content: '' }, null, 0) + chunk({ content: 'tok0 ' }, null, 1)),
    ...Array.from({ length: tokens - 1 }, (_, index) => Buffer.from(chunk({ content: `tok${index + 1} ` }, null, index + 2))),
    Buffer.from(`${chunk({}, 'length', tokens)}${usage}${framed('[DONE]')}0\r\n\r\n`),
  ];
  framesByLength.set(tokens, frames);
  return frames;
}

interface Stream {
  readonly socket: Socket;
  readonly frames: readonly Buffer[];
  next: number;
}

/** Streams of one pace. */
class Pace {
  private readonly groups = Array.from({ length: GROUPS }, () => new Set<Stream>());
  private turn = 0;
  private opened = 0;

  constructor(tokensPerSecond: number) {
    setInterval(() => this.send(), 1_000 / tokensPerSecond / GROUPS);
  }

  add(socket: Socket, frames: readonly Buffer[]): void {
    this.groups[(this.opened += 1) % GROUPS]?.add({ socket, frames, next: 1 });
  }

  private send(): void {
    const group = this.groups[(this.turn += 1) % GROUPS];
    for (const stream of group ?? []) {
      const frame = stream.frames[stream.next];
      stream.next += 1;
      if (frame === undefined || stream.socket.destroyed) group?.delete(stream);
      else stream.socket.write(frame);
    }
  }
}
const paces = new Map<number, Pace>();
const numberIn = (body: string, name: string, otherwise: number): number => Number(new RegExp(`"${name}": ?(\\d+)`).exec(body)?.[1] ?? otherwise);

function answer(socket: Socket, head: string, body: string): void {
  if (head.startsWith('POST /v1/embeddings')) socket.write(embeddingAnswer);
  else if (!body.includes(BODY_KEY) && !body.includes('"stream": true')) socket.write(chatAnswer);
  else {
    const frames = framesOf(numberIn(body, 'max_tokens', 20));
    const tokensPerSecond = numberIn(body, 'seed', 1_000);
    let pace = paces.get(tokensPerSecond);
    if (pace === undefined) paces.set(tokensPerSecond, (pace = new Pace(tokensPerSecond)));
    if (frames[0] !== undefined) socket.write(frames[0]);
    pace.add(socket, frames);
  }
}

/** One request after the other on each connection; bodies with a length, or chunked as a proxy may send them. */
function serve(socket: Socket): void {
  let text = '';
  socket.setNoDelay(true);
  socket.on('error', () => undefined);
  socket.on('data', (data: Buffer) => {
    text += data.toString('latin1');
    for (;;) {
      const end = text.indexOf('\r\n\r\n');
      if (end < 0) return;
      const head = text.slice(0, end);
      const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
      const bodyEnd = length === undefined ? (/\r\ntransfer-encoding: *chunked/i.test(head) ? text.indexOf('0\r\n\r\n', end + 4) + 5 : end + 4) : end + 4 + Number(length);
      if (text.length < bodyEnd || bodyEnd < end + 4) return;
      const body = text.slice(end + 4, bodyEnd);
      text = text.slice(bodyEnd);
      answer(socket, head, body);
    }
  });
}

const ports: number[] = [];
for (let index = 0; index < options.ports; index += 1) {
  const server = createServer(serve);
  await new Promise<void>((resolve) => server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, resolve));
  ports.push((server.address() as { port: number }).port);
}
process.stdout.write(`${JSON.stringify({ ports })}\n`);
