import type { StreamName } from '@penstock/contract-events';
import type { RecordedEvent, Subscription } from '@penstock/kernel';
import type { Msg } from '@nats-io/transport-node';
import { z } from 'zod';
import type { NatsLink } from './connect-nats.js';
import { leaderGet } from './direct-get.js';
import { decodeStored } from './event-codec.js';

/** Asks the processes of a durable to take one stored event once more. */
export function redriveSubject(durable: string): string {
  return `redrive.${durable}`;
}

export const redriveRequest = z.object({ sequence: z.int().positive() });

export const redriveReply = z.discriminatedUnion('kind', [z.object({ kind: z.literal('done') }), z.object({ kind: z.literal('failed'), reason: z.string() })]);
export type RedriveReply = z.infer<typeof redriveReply>;

/** Serves re-drives of one durable, one process of it per request. The event comes from the stream, never from the request. */
export function serveRedrive(link: NatsLink, stream: StreamName, durable: string, handle: (event: RecordedEvent) => Promise<void>): Subscription {
  const inFlight = new Set<Promise<void>>();
  const subscription = link.connection.subscribe(redriveSubject(durable), {
    queue: durable,
    callback: (error, message) => {
      if (error !== null) return;
      const work = answer(message).finally(() => inFlight.delete(work));
      inFlight.add(work);
    },
  });
  const answer = async (message: Msg): Promise<void> => {
    const reply = await redriveOne(link, stream, message, handle).catch((error: unknown): RedriveReply => ({ kind: 'failed', reason: error instanceof Error ? error.message : JSON.stringify(error) }));
    message.respond(JSON.stringify(reply));
  };
  return {
    close: async () => {
      subscription.unsubscribe();
      await Promise.allSettled(inFlight);
    },
  };
}

async function redriveOne(link: NatsLink, stream: StreamName, message: Msg, handle: (event: RecordedEvent) => Promise<void>): Promise<RedriveReply> {
  const { sequence } = redriveRequest.parse(message.json());
  const stored = await leaderGet(link.connection, stream, { seq: sequence });
  if (stored === undefined) return { kind: 'failed', reason: `event ${sequence} is no longer in ${stream}` };
  const decoded = decodeStored(stored);
  if (decoded.kind === 'poison') return { kind: 'failed', reason: decoded.reason };
  await handle(decoded.event);
  return { kind: 'done' };
}
