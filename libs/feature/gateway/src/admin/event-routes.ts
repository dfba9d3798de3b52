import { Inject, Injectable } from '@nestjs/common';
import { contexts, streamOf, subjectOf, type Context } from '@penstock/contract-events';
import type { EventBody, eventsQuery, redriveRequest } from '@penstock/contract-http';
import { isId, type RecordedEvent, type Subscription } from '@penstock/kernel';
import type { z } from 'zod';
import type { GatewayPorts } from '../gateway-ports.js';
import { EventStream } from '../http/event-stream.js';
import { OpenStreams } from '../http/open-streams.js';
import { RequestFault } from '../http/request-fault.js';
import { ANSWERED, onRoute, type RouteCall, type RouteGroup } from '../http/route-call.js';
import { GATEWAY_PORTS } from '../tokens.js';
import { requireOperator } from './require-operator.js';

type EventsQuery = z.output<typeof eventsQuery>;

/** Events that one listing looks at to find those that match. */
const EVENTS_SCAN_MAX = 20_000;
const DEAD_LETTERS_MAX = 1_000;

/** The event log, and what its consumers could not take. */
@Injectable()
export class EventRoutes implements RouteGroup {
  readonly handlers = [
    onRoute<EventsQuery>('GET /admin/v1/events', (call) => this.events(call)),
    onRoute('GET /admin/v1/dead-letters', (call) => this.deadLetters(call)),
    onRoute<unknown, z.output<typeof redriveRequest>>('POST /admin/v1/dead-letters/redrive', (call) => this.redrive(call)),
  ];

  constructor(@Inject(GATEWAY_PORTS) private readonly ports: GatewayPorts, @Inject(OpenStreams) private readonly streams: OpenStreams) {}

  private async events(call: RouteCall<EventsQuery>): Promise<unknown> {
    requireOperator(call.principal);
    const { query } = call;
    if (query.id !== undefined && !isId(query.id)) throw new RequestFault({ code: 'invalid_value', message: `'id' is not an id.`, param: 'id' });
    const asked: readonly Context[] = query.context === undefined ? contexts : [query.context];
    const matches = (event: RecordedEvent): boolean => (query.aggregate === undefined || event.ref.aggregate === query.aggregate) && (query.id === undefined || event.ref.id === query.id);
    if (query.follow === 'true') {
      await this.follow(call, asked, matches);
      return ANSWERED;
    }
    const found = await Promise.all(asked.map((context) => this.list(context, query, matches)));
    const events = found.flatMap((list) => list.events).sort((left, right) => (left.time < right.time ? -1 : left.time > right.time ? 1 : left.sequence - right.sequence));
    // Without a place to begin at, the newest ones are wanted.
    const page = query.from_sequence === undefined ? events.slice(-query.limit) : events.slice(0, query.limit);
    return { data: page.map(toEventBody), has_more: events.length > page.length || found.some((list) => list.hasMore) };
  }

  /** From `from_sequence`, else from what comes next, until the client goes away. */
  private async follow(call: RouteCall<EventsQuery>, asked: readonly Context[], matches: (event: RecordedEvent) => boolean): Promise<void> {
    requireRoom(this.streams);
    const starts = await Promise.all(asked.map(async (context) => call.query.from_sequence ?? (await this.ports.log.bounds(streamOf(context))).lastSequence + 1));
    const stream = new EventStream(call.reply, this.ports.timers);
    const subscriptions: Promise<Subscription>[] = asked.map((context, index) => this.ports.log.tail(streamOf(context), starts[index] ?? 1, (events) => {
      for (const event of events) if (matches(event)) stream.send(toEventBody(event));
    }));
    await this.streams.hold(stream, async () => {
      for (const subscription of await Promise.allSettled(subscriptions)) if (subscription.status === 'fulfilled') await subscription.value.close();
    });
  }

  private async list(context: Context, query: EventsQuery, matches: (event: RecordedEvent) => boolean): Promise<{ events: RecordedEvent[]; hasMore: boolean }> {
    const { from_sequence: from, limit, aggregate, id } = query;
    if (aggregate !== undefined && id !== undefined && query.context !== undefined) {
      const history = await this.ports.log.load({ context, aggregate, id }, (from ?? 1) - 1);
      return { events: from === undefined ? history.slice(-limit) : history.slice(0, limit), hasMore: history.length > limit };
    }
    const { firstSequence, lastSequence } = await this.ports.log.bounds(streamOf(context));
    const isFiltered = aggregate !== undefined || id !== undefined;
    const start = Math.max(firstSequence, from ?? lastSequence + 1 - (isFiltered ? EVENTS_SCAN_MAX : limit));
    const end = Math.min(lastSequence, start + EVENTS_SCAN_MAX - 1);
    const events: RecordedEvent[] = [];
    for await (const batch of this.ports.log.read(streamOf(context), { fromSequence: start, toSequence: end })) {
      events.push(...batch.filter(matches));
      if (from !== undefined && events.length > limit) break;
    }
    const page = from === undefined ? events.slice(-limit) : events.slice(0, limit);
    return { events: page, hasMore: events.length > page.length || end < lastSequence };
  }

  private async deadLetters({ principal }: RouteCall): Promise<unknown> {
    requireOperator(principal);
    const letters = await this.ports.deadLetters.list({ limit: DEAD_LETTERS_MAX });
    return { data: letters.map((letter) => ({ id: String(letter.id), stream: letter.stream, sequence: letter.sequence, consumer: letter.consumer, type: null, reason: letter.reason, deliveries: letter.deliveries, at: letter.deadAt })) };
  }

  private async redrive({ principal, body }: RouteCall<unknown, z.output<typeof redriveRequest>>): Promise<unknown> {
    requireOperator(principal);
    const ids = body.ids?.map(Number) ?? (await this.ports.deadLetters.list({ limit: DEAD_LETTERS_MAX })).map((letter) => letter.id);
    const bad = ids.findIndex((id) => !Number.isSafeInteger(id) || id < 1);
    if (bad >= 0) throw new RequestFault({ code: 'invalid_value', message: `'ids[${bad}]' is not the id of a dead letter.`, param: `ids[${bad}]` });
    let redriven = 0;
    // One after the other, as their consumers take events in order.
    for (const id of ids) if ((await this.ports.deadLetters.redrive(id)).kind === 'done') redriven += 1;
    return { redriven };
  }
}

export function requireRoom(streams: OpenStreams): void {
  if (streams.isFull) throw new RequestFault({ code: 'rate_limit_exceeded', message: 'Too many endless streams are open. Close one, then try again.', retryAfterMs: 1_000 });
}

function toEventBody(event: RecordedEvent): EventBody {
  const { id, type, source, time, stream, sequence, correlationId, causationId, traceparent, data, ref } = event;
  return { id, type, source, time, subject: subjectOf(ref), stream, sequence, correlation_id: correlationId, causation_id: causationId, traceparent: traceparent ?? null, data };
}
