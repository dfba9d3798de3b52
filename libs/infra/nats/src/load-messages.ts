import type { NatsConnection } from '@nats-io/transport-node';
import { directGetPage, leaderGet, type StoredMessage } from './direct-get.js';

const PAGE_SIZE = 1_000;
/** An aggregate with more events than this needs a snapshot, not a longer load. */
const AGGREGATE_EVENTS_MAX = 100_000;

/**
 * Every message of one subject after a sequence. `fresh` is the sequence that must be seen if it is stored at all,
 * or `leader` to ask the leader for the newest one; what a replica did not have yet is read from the leader.
 */
export async function loadMessages(connection: NatsConnection, stream: string, subject: string, after: number, fresh: number | 'leader'): Promise<readonly StoredMessage[]> {
  const messages = await directMessages(connection, stream, subject, after);
  const newest = (): number => messages.at(-1)?.sequence ?? after;
  const target = fresh === 'leader' ? ((await leaderGet(connection, stream, { last_by_subj: subject }))?.sequence ?? 0) : fresh;
  while (newest() < target && messages.length < AGGREGATE_EVENTS_MAX) {
    const next = await leaderGet(connection, stream, { seq: newest() + 1, next_by_subj: subject });
    if (next === undefined) break;
    messages.push(next);
  }
  return messages;
}

async function directMessages(connection: NatsConnection, stream: string, subject: string, after: number): Promise<StoredMessage[]> {
  const messages: StoredMessage[] = [];
  for (let seq = after + 1; messages.length < AGGREGATE_EVENTS_MAX; ) {
    const page = await directGetPage(connection, stream, { seq, batch: PAGE_SIZE, next_by_subj: subject });
    messages.push(...page.messages);
    const last = page.messages.at(-1);
    if (last === undefined || page.pending === 0) return messages;
    seq = last.sequence + 1;
  }
  throw new RangeError(`${subject} has more than ${AGGREGATE_EVENTS_MAX} events; load it from a snapshot`);
}
