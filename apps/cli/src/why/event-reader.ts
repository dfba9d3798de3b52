import { asCatalogueEvent, type CatalogueEvent } from '@penstock/contract-events';
import { eventList, type EventBody } from '@penstock/contract-http';
import type { ApiClient } from '../client/api-client.js';

/** The newest events of one aggregate that one question looks at. */
const EVENTS_MAX = 1_000;

export type StoryEvent = CatalogueEvent & Pick<EventBody, 'id' | 'time' | 'source' | 'correlation_id' | 'causation_id'>;

/** Reads the histories of aggregates through the admin API. */
export class EventReader {
  constructor(private readonly client: ApiClient) {}

  async historyOf(context: string, aggregate: string, id: string): Promise<readonly StoryEvent[]> {
    const query = new URLSearchParams({ context, aggregate, id, limit: String(EVENTS_MAX) });
    const { data } = await this.client.call('GET', `/admin/v1/events?${query}`, eventList);
    return data.map(toStoryEvent);
  }

  /** What was promised of an endpoint, as far back as one listing of the ledger looks. */
  async reservationsOf(endpointId: string): Promise<readonly StoryEvent[]> {
    const history = await this.historyOf('fleet', 'commitment-ledger', 'fleet');
    return history.filter((event) => (event.type === 'reservation.released.v1' ? event.data.endpointId === endpointId : (event.type === 'reservation.made.v1' || event.type === 'reservation.refused.v1') && event.data.level.endpointId === endpointId));
  }

  /** The newest replicas that were placed for an endpoint, ended ones too, as far back as one listing looks. */
  async replicasOf(endpointId: string): Promise<readonly string[]> {
    const query = new URLSearchParams({ context: 'fleet', aggregate: 'replica', limit: String(EVENTS_MAX) });
    const { data } = await this.client.call('GET', `/admin/v1/events?${query}`, eventList);
    return data.map(toStoryEvent).flatMap((event) => (event.type === 'replica.placed.v2' && event.data.endpointId === endpointId ? [event.data.replicaId] : []));
  }
}

export function toStoryEvent({ id, type, time, source, correlation_id, causation_id, data }: EventBody): StoryEvent {
  const event = asCatalogueEvent({ type, data });
  return { ...event, id, time, source, correlation_id, causation_id };
}

/** Oldest first; events of one instant stay in the order given. */
export function inOrder(events: readonly StoryEvent[]): readonly StoryEvent[] {
  return [...events].sort((one, other) => (one.time < other.time ? -1 : one.time > other.time ? 1 : 0));
}
