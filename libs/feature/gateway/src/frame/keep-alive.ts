import type { ChatParts } from '../chat/chat-parts.js';
import type { ClientAnswer } from '../chat/client-answer.js';
import type { ModelJob } from './model-work.js';

/** What a comment says while a stream that has begun stands still. */
const WAITING = 'waiting';

/** Times of one answer, in milliseconds since the epoch. */
export interface AnswerTimes {
  /** Something of a stream was sent; undefined before its first token. */
  readonly lastTextMs: number | undefined;
  /** A sign of life was sent. */
  readonly lastHeartbeatMs: number | undefined;
}

/**
 * Gives up a client that takes nothing, and shows one whose stream has not begun, or stands still, that it is not forgotten: proxies
 * on the way cut what is silent. Called every few hundred milliseconds; returns when a sign of life was sent last.
 */
export function keepAlive({ config, loading }: Pick<ChatParts, 'config' | 'loading'>, answer: ClientAnswer, { startedAtMs, endpoint }: ModelJob, nowMs: number, isStreamed: boolean, { lastTextMs, lastHeartbeatMs }: AnswerTimes): number | undefined {
  const { blockedSince } = answer;
  if (blockedSince !== undefined && nowMs - blockedSince >= config.CLIENT_STALL_TIMEOUT_MS) answer.drop();
  const isEarly = lastTextMs === undefined && nowMs - startedAtMs < config.EARLY_HEADERS_AFTER_MS;
  if (!isStreamed || isEarly || nowMs - Math.max(lastTextMs ?? -Infinity, lastHeartbeatMs ?? -Infinity) < config.HEARTBEAT_INTERVAL_MS) return lastHeartbeatMs;
  answer.heartbeat(lastTextMs === undefined ? loading(endpoint.endpointId) : WAITING);
  return nowMs;
}
