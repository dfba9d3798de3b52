import { once } from 'node:events';
import { sseComment, sseFrame, SSE_DONE } from '@penstock/domain-serving';
import type { Timers } from '@penstock/kernel';
import type { FastifyReply } from 'fastify';
import { RequestFault } from '../http/request-fault.js';
import type { AnswerHead } from './answer-head.js';
import { storedBody } from './stored-body.js';
import type { StoredAnswer } from './stored-answers.js';

const HEARTBEAT_INTERVAL_MS = 5_000;

const lostFault = { code: 'service_unavailable', message: 'The gateway that made this answer is gone. Send the request again; it is billed once.', retryAfterMs: 1_000 } as const;
const truncatedFault = { code: 'idempotent_answer_not_stored', message: 'The answer became too large to be stored. Send the request without Idempotency-Key and without respond-async.' } as const;

/** An answer in full, once it is there; its head has a status then. */
export async function wholeAnswer({ source }: StoredAnswer): Promise<{ readonly head: AnswerHead; readonly body: Buffer }> {
  const pieces: Uint8Array[] = [];
  for (;;) {
    const news = await source.after(pieces.length);
    if (news === undefined) throw new RequestFault(lostFault);
    pieces.push(...news.pieces);
    if (!news.isOver) continue;
    if (news.head.isTruncated) throw new RequestFault(truncatedFault);
    return { head: news.head, body: Buffer.concat(pieces) };
  }
}

/** Gives a client the answer as its own request would have: streamed as it comes, or whole. */
export async function deliverAnswer(answer: StoredAnswer, reply: FastifyReply): Promise<void> {
  const first = await firstNews(answer);
  if (answer.isReplay) void reply.header('idempotent-replayed', 'true').header('x-original-request-id', answer.head.requestId);
  if (!isEventStream(first)) {
    const { head, body } = await wholeAnswer(answer);
    await reply.code(head.status ?? 500).headers(head.headers).send(body);
    return;
  }
  startStream(reply, first.status ?? 200, first.headers);
  await pipe(answer, reply);
}

/** Gives a client that attaches the answer as an event stream, whatever it was asked for as. */
export async function streamAnswer(answer: StoredAnswer, reply: FastifyReply, timers: Timers): Promise<void> {
  startStream(reply, 200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache, must-revalidate', 'x-accel-buffering': 'no' });
  const { raw } = reply;
  const stopHeartbeat = timers.every(HEARTBEAT_INTERVAL_MS, () => {
    if (!raw.destroyed && !raw.writableNeedDrain) raw.write(sseComment('waiting'));
  });
  try {
    const first = await firstNews(answer);
    stopHeartbeat();
    if (isEventStream(first)) {
      await pipe(answer, reply);
      return;
    }
    const { head, body } = await wholeAnswer(answer);
    const stored = storedBody(head, body);
    raw.end(sseFrame(stored.is_base64 ? stored : stored.body) + SSE_DONE);
  } catch {
    // Headers are gone, so a broken stream is all that tells the client.
    raw.destroy();
  } finally {
    stopHeartbeat();
  }
}

/** Waits until the answer has begun. */
async function firstNews({ source }: StoredAnswer): Promise<AnswerHead> {
  for (;;) {
    const news = await source.after(0);
    if (news === undefined) throw new RequestFault(lostFault);
    if (news.head.status !== null) return news.head;
    if (news.isOver) throw new RequestFault(lostFault);
  }
}

function isEventStream({ headers }: AnswerHead): boolean {
  return (headers['content-type'] ?? '').startsWith('text/event-stream');
}

function startStream(reply: FastifyReply, status: number, headers: Readonly<Record<string, string>>): void {
  const own = Object.fromEntries(Object.entries(reply.getHeaders()).map(([name, value]) => [name, String(value)]));
  reply.hijack();
  reply.raw.writeHead(status, { ...own, ...headers });
  reply.raw.flushHeaders();
}

/** Back-pressure of a slow client holds up nobody but itself. */
async function pipe({ source }: StoredAnswer, { raw }: FastifyReply): Promise<void> {
  for (let known = 0; ;) {
    const news = await source.after(known);
    if (raw.destroyed) return;
    if (news === undefined || news.head.isTruncated) {
      raw.destroy();
      return;
    }
    known += news.pieces.length;
    for (const piece of news.pieces) {
      if (!raw.write(piece)) await Promise.race([once(raw, 'drain'), once(raw, 'close')]);
      if (raw.destroyed) return;
    }
    if (!news.isOver) continue;
    raw.end();
    return;
  }
}
