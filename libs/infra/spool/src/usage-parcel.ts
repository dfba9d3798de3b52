import { USAGE_RECORDS_MAX, type UsageRecord } from '@penstock/contract-events';
import { usageRef } from '@penstock/domain-usage';
import { assert, type AppendRequest, type EventOrigin, type NewEvent } from '@penstock/kernel';

/** The file that holds a record until the event log has it. */
export interface SpoolSegment {
  /** Settled records in it that the event log has not confirmed. */
  unconfirmed: number;
}

/** A settled record on its way to the event log. */
export interface UsageEntry {
  readonly record: UsageRecord;
  /** The record as JSON; undefined for one that another process wrote, which is checked like anybody's. */
  readonly json: string | undefined;
  /** False for one that the broker may have in an event of its own: it goes alone, so that a repeat is recognised. */
  readonly mayJoin: boolean;
  /** W3C trace context of the request, which is gone after a crash. */
  readonly traceparent: string | undefined;
  readonly segment: SpoolSegment;
}

/** Entries of one append, at most {@link USAGE_RECORDS_MAX}: one answer of the broker confirms them all. After a failure they go out again in the same company. */
export type UsageParcel = readonly UsageEntry[];

/** Puts entries together by subject, in their order, into at most `parcelsMax` parcels; the rest is left. */
export function packParcels(entries: readonly UsageEntry[], parcelsMax: number): { readonly parcels: readonly UsageParcel[]; readonly rest: readonly UsageEntry[] } {
  const parcels: UsageEntry[][] = [];
  const open = new Map<string, UsageEntry[]>();
  let taken = 0;
  for (; taken < entries.length && parcels.length < parcelsMax; taken += 1) {
    const entry = entries[taken];
    if (entry === undefined) break;
    const subject = entry.mayJoin ? `${entry.record.organisationId}/${entry.record.endpointId}` : '';
    const parcel = entry.mayJoin ? open.get(subject) : undefined;
    if (parcel !== undefined && parcel.length < USAGE_RECORDS_MAX) {
      parcel.push(entry);
      continue;
    }
    const begun = [entry];
    parcels.push(begun);
    if (entry.mayJoin) open.set(subject, begun);
  }
  return { parcels, rest: entries.slice(taken) };
}

/** Those of a parcel that share one event. A request whose trace is sampled has an event of its own, in its trace. */
export function joinedOf(parcel: UsageParcel): readonly UsageEntry[] {
  return parcel.length === 1 ? parcel : parcel.filter(({ traceparent }) => !isSampled(traceparent));
}

/** The same parcel makes the same event ids, so that the broker recognises a repeat. */
export function appendRequestOf(parcel: UsageParcel, source: string): AppendRequest {
  const joined = joinedOf(parcel);
  const groups = joined.length === parcel.length ? [parcel] : [...(joined.length > 0 ? [joined] : []), ...parcel.filter(({ traceparent }) => isSampled(traceparent)).map((entry) => [entry])];
  const origins = groups.map(originOf);
  const [first] = parcel;
  const [origin] = origins;
  assert(first !== undefined && origin !== undefined, 'a parcel holds at least one record');
  const events = groups.map((group, index): NewEvent => ({ type: 'usage.recorded.v2', data: { records: group.map(({ record }) => record) }, json: jsonOf(group), origin: groups.length === 1 ? undefined : origins[index] }));
  return { ref: usageRef(first.record), events, expected: 'any', source, ...origin };
}

function originOf(group: readonly UsageEntry[]): EventOrigin {
  const [first] = group;
  const last = group.at(-1);
  assert(first !== undefined && last !== undefined, 'an event of usage holds at least one record');
  const nowMs = Date.parse(last.record.startedAt) + Math.round(last.record.durationMs);
  if (group.length === 1) return { commandId: commandIdOf(first.record), traceparent: first.traceparent, correlationId: first.record.requestId, causationId: first.record.requestId, nowMs };
  // A record is the first of at most one company, which makes this unique.
  const commandId = `usage_${first.record.requestId}`;
  return { commandId, traceparent: undefined, correlationId: commandId, causationId: commandId, nowMs };
}

function jsonOf(group: readonly UsageEntry[]): string | undefined {
  let text = '';
  for (const { json } of group) {
    if (json === undefined) return undefined;
    text += text === '' ? json : `,${json}`;
  }
  return `{"records":[${text}]}`;
}

/** A request that is run again after a crash may end in another way; that is another event, and sinks decide which counts. */
function commandIdOf({ requestId, status }: UsageRecord): string {
  return status === 'completed' ? requestId : `${requestId}_${status}`;
}

/** The last two digits are the flags; the lowest bit says sampled (W3C Trace Context, section 3.2.2.5). */
function isSampled(traceparent: string | undefined): boolean {
  return traceparent !== undefined && (Number.parseInt(traceparent.slice(-2), 16) & 1) === 1;
}
