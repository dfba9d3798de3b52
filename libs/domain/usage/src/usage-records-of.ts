import { parseStoredEvent, type UsageRecord, type UsageRecordedV2 } from '@penstock/contract-events';

/** The records that an event of `EV_USAGE` holds, in their order, whatever version it was written in; none for an event of another kind. */
export function usageRecordsOf({ type, data }: { readonly type: string; readonly data: unknown }): readonly UsageRecord[] {
  const parsed = parseStoredEvent(type, data);
  return parsed.kind === 'parsed' && parsed.type === 'usage.recorded.v2' ? (parsed.data as UsageRecordedV2).records : [];
}
