import type { ChatParts } from '../chat/chat-parts.js';
import type { ClientAnswer } from '../chat/client-answer.js';
import type { ModelJob } from './model-work.js';

/**
 * Gives up a client that takes nothing, and shows one whose stream has not begun that something still happens. Called every few hundred
 * milliseconds; returns when a sign of life was sent last. In milliseconds since the epoch.
 */
export function keepAlive({ config, loading }: Pick<ChatParts, 'config' | 'loading'>, answer: ClientAnswer, { startedAtMs, endpoint }: ModelJob, nowMs: number, isWaiting: boolean, lastMs: number | undefined): number | undefined {
  const { blockedSince } = answer;
  if (blockedSince !== undefined && nowMs - blockedSince >= config.CLIENT_STALL_TIMEOUT_MS) answer.drop();
  if (!isWaiting || nowMs - startedAtMs < config.EARLY_HEADERS_AFTER_MS || (lastMs !== undefined && nowMs - lastMs < config.HEARTBEAT_INTERVAL_MS)) return lastMs;
  answer.heartbeat(loading(endpoint.endpointId));
  return nowMs;
}
