import type { ApiFault, ChatCompletionRequest, ResponseRequest } from '@penstock/contract-http';
import { dialectOf, estimatePromptTokens, ResponseStream, sseEvent, toEngineRequest, withContextParam, type EngineDialect, type JsonDocument, type ResponseBody, type ResponseStep } from '@penstock/domain-serving';
import type { EngineSession, StreamReader } from './engine-session.js';
import type { OperationContext } from './operation-desk.js';
import type { Operation, OperationOutcome } from './operation.js';

export interface ResponseJob {
  readonly request: ResponseRequest;
  /** The same question as a chat. */
  readonly document: JsonDocument;
  readonly chat: ChatCompletionRequest;
  readonly now: () => number;
  /** Keeps a response that is to be stored; says whether that worked. */
  readonly store: ((response: ResponseBody) => Promise<boolean>) | undefined;
}

/** `POST /v1/responses`: the engine is asked as in a chat, always for a stream, and its answer translated. */
export class ResponseOperation implements Operation {
  readonly metered = 'chat';
  readonly isStreamed: boolean;
  /** These streams end with their last event. */
  readonly terminator = '';
  readonly promptTokensEstimate: number;
  readonly asked: Operation['asked'];
  readonly prompted: Operation['prompted'];
  private stream: ResponseStream | undefined;

  constructor(private readonly job: ResponseJob, private readonly context: OperationContext) {
    this.isStreamed = job.request.stream === true;
    // As a chat, it shares its beginning with what a chat would send.
    this.prompted = { document: job.document, member: 'messages' };
    this.asked = { completionTokensMax: job.request.max_output_tokens ?? null, choices: 1 };
    this.promptTokensEstimate = estimatePromptTokens(job.document.text.length);
  }

  asksForStream(): boolean {
    return true;
  }

  failureFrames({ message }: ApiFault): string {
    return (this.stream ?? this.newStream(dialectOf(this.context.endpoint.engine))).failure(message).map(sseEvent).join('');
  }

  async perform(session: EngineSession): Promise<OperationOutcome> {
    const { job } = this;
    const { dialect, servedModel, cacheSalt } = session;
    const stream = this.newStream(dialect);
    this.stream = stream;
    let last: ResponseStep['events'][number] | undefined;
    const read = ({ events, outcome }: ResponseStep) => {
      // While two attempts run, the one that was read last is the one whose answer is handed on.
      this.stream = stream;
      if (outcome === 'completed') last = events.at(-1);
      const sent = outcome === 'completed' ? events.slice(0, -1) : events;
      return { frames: this.isStreamed ? sent.map(sseEvent).join('') : '', outcome };
    };
    const reader: StreamReader = { push: (data) => read(stream.push(data)), end: () => read(stream.end()), usage: () => stream.usage() };
    const end = await session.stream('/v1/chat/completions', toEngineRequest(job.document, job.chat, { servedModel, dialect, stream: true, cacheSalt }), reader);
    if (end.kind === 'failed') return { kind: 'failed', fault: withContextParam(end.fault, 'input') };
    const response = stream.response();
    if (end.kind === 'aborted' || response === undefined || last === undefined) return { kind: 'aborted' };
    // The client is told that it is stored only once it is.
    const isStored = job.store !== undefined && (await job.store(response));
    const final = { ...response, store: isStored };
    return { kind: 'completed', usage: stream.usage(), finishReason: stream.finishReason(), answer: this.isStreamed ? end.tail + sseEvent({ ...last, response: final }) : JSON.stringify(final) };
  }

  private newStream(dialect: EngineDialect): ResponseStream {
    const { job: { request, now }, context: { requestId, created, endpoint } } = this;
    return new ResponseStream({ id: responseIdOf(requestId), created, model: endpoint.name, request }, dialect, now);
  }
}

export function responseIdOf(requestId: string): string {
  return `resp_${requestId.replace(/^req_/, '')}`;
}
