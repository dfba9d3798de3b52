import { Agent, request, type ClientRequest, type IncomingHttpHeaders } from 'node:http';

export interface ChatCall {
  readonly url: string;
  readonly key: string;
  readonly model: string;
  readonly content: string;
  readonly stream?: boolean | undefined;
  readonly tokensMax?: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Closes the connection: after so many bytes of the answer came, or so many milliseconds after the request went out. */
  readonly leave?: { readonly afterBytes: number } | { readonly afterMs: number } | undefined;
  /** Closes the connection once this resolves. */
  readonly leaveWhen?: Promise<void> | undefined;
  readonly timeoutMs?: number | undefined;
}

/** What a client saw. `left` is set when it closed the connection itself, in `performance.now()` milliseconds. */
export interface ChatOutcome {
  /** 0 when no answer came. */
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly isComplete: boolean;
  readonly leftAtMs: number | undefined;
  readonly firstByteMs: number | undefined;
  readonly totalMs: number;
  readonly error: string | undefined;
}

const TIMEOUT_MS = 60_000;

/** A plain HTTP client that can leave at any moment, which libraries make hard. */
export class ChatClient {
  private readonly agent: Agent;

  constructor(connectionsMax = Infinity) {
    this.agent = new Agent({ keepAlive: true, maxSockets: connectionsMax, scheduling: 'lifo' });
  }

  ask(call: ChatCall): Promise<ChatOutcome> {
    const body = JSON.stringify({ model: call.model, messages: [{ role: 'user', content: call.content }], max_tokens: call.tokensMax ?? 64, ...(call.stream === true ? { stream: true, stream_options: { include_usage: true } } : {}) });
    return new Promise((resolve) => {
      const startedMs = performance.now();
      let [status, text, isComplete] = [0, '', false];
      let headers: IncomingHttpHeaders = {};
      let leftAtMs: number | undefined;
      let firstByteMs: number | undefined;
      let leaveTimer: NodeJS.Timeout | undefined;
      const done = (error?: string): void => {
        clearTimeout(limit);
        clearTimeout(leaveTimer);
        resolve({ status, headers, text, isComplete, leftAtMs, firstByteMs, totalMs: performance.now() - startedMs, error });
      };
      const leave = (): void => {
        leftAtMs ??= performance.now();
        outgoing.destroy();
      };
      const outgoing: ClientRequest = request(`${call.url}/v1/chat/completions`, {
        method: 'POST', agent: this.agent,
        headers: { authorization: `Bearer ${call.key}`, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...call.headers },
      }, (response) => {
        ({ headers } = response);
        status = response.statusCode ?? 0;
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          firstByteMs ??= performance.now() - startedMs;
          text += chunk;
          if (call.leave !== undefined && 'afterBytes' in call.leave && text.length >= call.leave.afterBytes) leave();
        });
        response.once('end', () => {
          isComplete = response.complete;
          done();
        });
        response.once('error', (error) => done(error.message));
        response.once('close', () => done('closed'));
      });
      const limit = setTimeout(() => outgoing.destroy(new Error('no answer in time')), call.timeoutMs ?? TIMEOUT_MS);
      outgoing.once('error', (error) => done(error.message));
      outgoing.once('close', () => done('closed'));
      outgoing.end(body);
      void call.leaveWhen?.then(leave);
      if (call.leave !== undefined && 'afterMs' in call.leave) leaveTimer = setTimeout(leave, call.leave.afterMs);
    });
  }

  close(): void {
    this.agent.destroy();
  }
}

interface StreamChunk {
  readonly choices?: readonly { readonly delta?: { readonly content?: string | null }; readonly finish_reason?: string | null }[];
  readonly usage?: { readonly completion_tokens: number; readonly prompt_tokens: number } | null;
  readonly error?: { readonly code: string | null; readonly message: string };
}

export interface ReadAnswer {
  readonly content: string;
  readonly finishReason: string | undefined;
  readonly errorCode: string | undefined;
  readonly completionTokens: number | undefined;
  /** Frames that are neither JSON nor the end mark; there must be none. */
  readonly strayFrames: number;
  readonly isDone: boolean;
}

/** Reads the text of a stream as strictly as the format allows. */
export function readStream(text: string): ReadAnswer {
  const answer = { content: '', finishReason: undefined as string | undefined, errorCode: undefined as string | undefined, completionTokens: undefined as number | undefined, strayFrames: 0, isDone: false };
  for (const block of text.split('\n\n')) {
    // Comments keep a connection alive and stand on lines of their own.
    const event = block.replace(/^(?::[^\n]*(?:\n|$))+/, '');
    if (event === '') continue;
    if (answer.isDone || !event.startsWith('data: ') || /[\r\n]/.test(event)) {
      answer.strayFrames += 1;
      continue;
    }
    if (event === 'data: [DONE]') {
      answer.isDone = true;
      continue;
    }
    let chunk: StreamChunk;
    try {
      chunk = JSON.parse(event.slice('data: '.length)) as StreamChunk;
    } catch {
      answer.strayFrames += 1;
      continue;
    }
    if (chunk.error !== undefined) answer.errorCode = chunk.error.code ?? 'none';
    answer.content += chunk.choices?.[0]?.delta?.content ?? '';
    answer.finishReason = chunk.choices?.[0]?.finish_reason ?? answer.finishReason;
    answer.completionTokens = chunk.usage?.completion_tokens ?? answer.completionTokens;
  }
  return answer;
}
