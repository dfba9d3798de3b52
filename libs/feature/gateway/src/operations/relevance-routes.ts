import { Inject, Injectable } from '@nestjs/common';
import type { ClassifyRequest, RerankRequest, ScoreRequest } from '@penstock/contract-http';
import {
  brokenAnswerFault, cosineSimilarity, documentTextsOf, estimatePromptTokens, promptUsage, rankDocuments, readClasses, readOptionalReply, readScores, readVectors, scorePairsOf, withContextParam,
  type EngineFault, type ScorePairs, type ScoreReading,
} from '@penstock/domain-serving';
import { RequestFault } from '../http/request-fault.js';
import { onRoute, type ANSWERED, type RouteCall, type RouteGroup } from '../http/route-call.js';
import type { EngineSession } from './engine-session.js';
import { OperationDesk, type OperationContext } from './operation-desk.js';
import type { OperationOutcome } from './operation.js';
import { WholeOperation } from './whole-operation.js';

type Scoring = ScoreReading | { readonly kind: 'failed'; readonly fault: EngineFault } | { readonly kind: 'aborted' };

/**
 * `POST /v1/rerank`, `/v1/score` and `/v1/classify`. An engine that ranks is asked to; with one that only makes vectors, texts are
 * as near as the cosine of their vectors says, which is what such models are trained for. llama.cpp is never asked to rank: it
 * ranks with any model, and the scores of one that was not trained for it mean nothing.
 */
@Injectable()
export class RelevanceRoutes implements RouteGroup {
  readonly handlers = [
    onRoute<unknown, RerankRequest>('POST /v1/rerank', (call) => this.rerank(call)),
    onRoute<unknown, ScoreRequest>('POST /v1/score', (call) => this.score(call)),
    onRoute<unknown, ClassifyRequest>('POST /v1/classify', (call) => this.classify(call)),
  ];

  constructor(@Inject(OperationDesk) private readonly desk: OperationDesk) {}

  private rerank(call: RouteCall<unknown, RerankRequest>): Promise<typeof ANSWERED> {
    const { body: request } = call;
    const texts = documentTextsOf(request);
    return this.serve(call, 'rerank', request.model, [request.query, ...texts], async (session, { endpoint, requestId }) => {
      const scoring = session.dialect.kind === 'vllm'
        ? await askScores(session, '/v1/rerank', { query: request.query, documents: texts, top_n: texts.length }, texts.length, 'rank')
        : await compare(session, { left: texts.map(() => request.query), right: texts });
      return answerOf(scoring, (usage, scores) => ({ id: idOf('rerank', requestId), model: endpoint.name, usage, results: rankDocuments(request, scores) }));
    });
  }

  private score(call: RouteCall<unknown, ScoreRequest>): Promise<typeof ANSWERED> {
    const { body: request } = call;
    const read = scorePairsOf(request);
    if (read.kind === 'fault') throw new RequestFault(read.fault);
    const { pairs } = read;
    return this.serve(call, 'score', request.model, [...pairs.left, ...pairs.right], async (session, { endpoint, requestId, created }) => {
      const scoring = session.dialect.kind === 'vllm'
        ? await askScores(session, '/v1/score', { text_1: pairs.left, text_2: pairs.right }, pairs.right.length, 'score texts')
        : await compare(session, pairs);
      return answerOf(scoring, (usage, scores) => ({
        id: idOf('score', requestId), object: 'list', created, model: endpoint.name, data: scores.map((score, index) => ({ index, object: 'score', score })), usage,
      }));
    });
  }

  private classify(call: RouteCall<unknown, ClassifyRequest>): Promise<typeof ANSWERED> {
    const { body: request } = call;
    const texts = typeof request.input === 'string' ? [request.input] : request.input;
    return this.serve(call, 'classify', request.model, texts, async (session, { endpoint, requestId, created }) => {
      const reply = await session.whole('/classify', JSON.stringify({ model: session.servedModel, input: texts }));
      if (reply.kind !== 'reply') return reply;
      const read = readOptionalReply(reply.status, reply.text, session.dialect, 'classify texts');
      if (read.kind === 'fault') return { kind: 'failed', fault: withContextParam(read.fault, 'input') };
      const data = readClasses(read.body, texts.length);
      if (data === undefined) return { kind: 'failed', fault: brokenAnswerFault };
      const scoring = readPromptTokens(read.body);
      return { kind: 'completed', usage: promptUsage(scoring), finishReason: null, answer: JSON.stringify({ id: idOf('classify', requestId), object: 'list', created, model: endpoint.name, data, usage: usageOf(scoring) }) };
    });
  }

  private serve(call: RouteCall, name: string, model: string, texts: readonly string[], perform: (session: EngineSession, context: OperationContext) => Promise<OperationOutcome>): Promise<typeof ANSWERED> {
    const promptTokensEstimate = estimatePromptTokens(texts.reduce((sum, text) => sum + text.length, 0));
    return this.desk.serve(call, { name, model, inputField: name === 'classify' ? 'input' : 'documents', make: (context) => new WholeOperation({ metered: 'embeddings', promptTokensEstimate, inputs: texts.length, perform: (session) => perform(session, context) }) });
  }
}

/** Scores as the engine gives them. */
async function askScores(session: EngineSession, path: string, body: object, count: number, what: string): Promise<Scoring> {
  const reply = await session.whole(path, JSON.stringify({ model: session.servedModel, ...body }));
  if (reply.kind !== 'reply') return reply;
  const read = readOptionalReply(reply.status, reply.text, session.dialect, what);
  return read.kind === 'fault' ? read : readScores(read.body, count);
}

/** Scores as the cosine of the texts' vectors; a text that stands in several pairs is read once. */
async function compare(session: EngineSession, { left, right }: ScorePairs): Promise<Scoring> {
  const texts = [...new Set([...left, ...right])];
  const reply = await session.whole('/v1/embeddings', JSON.stringify({ model: session.servedModel, input: texts, encoding_format: 'base64' }));
  if (reply.kind !== 'reply') return reply;
  const read = readVectors(reply.status, reply.text, session.dialect, texts.length);
  if (read.kind === 'fault') return read;
  const vectorOf = new Map(texts.map((text, index) => [text, read.vectors[index] ?? new Float32Array()]));
  const scores = left.map((text, index) => cosineSimilarity(vectorOf.get(text) ?? new Float32Array(), vectorOf.get(right[index] ?? '') ?? new Float32Array()));
  return { kind: 'scores', scores, promptTokens: read.promptTokens };
}

function answerOf(scoring: Scoring, body: (usage: ReturnType<typeof usageOf>, scores: readonly number[]) => object): OperationOutcome {
  if (scoring.kind === 'aborted' || scoring.kind === 'failed') return scoring;
  if (scoring.kind === 'fault') return { kind: 'failed', fault: withContextParam(scoring.fault, 'documents') };
  return { kind: 'completed', usage: promptUsage(scoring.promptTokens), finishReason: null, answer: JSON.stringify(body(usageOf(scoring.promptTokens), scoring.scores)) };
}

function readPromptTokens(body: unknown): number | undefined {
  const usage = (body as { usage?: { prompt_tokens?: unknown } }).usage?.prompt_tokens;
  return typeof usage === 'number' && Number.isSafeInteger(usage) ? usage : undefined;
}

function usageOf(promptTokens: number | undefined): { readonly prompt_tokens: number; readonly total_tokens: number } {
  return { prompt_tokens: promptTokens ?? 0, total_tokens: promptTokens ?? 0 };
}

function idOf(prefix: string, requestId: string): string {
  return `${prefix}-${requestId.replace(/^req_/, '')}`;
}
