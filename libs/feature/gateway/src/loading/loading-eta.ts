import { estimateStart, type FleetState } from '@penstock/domain-lifecycle';

/** Milliseconds until the endpoint answers, while it starts and earlier starts tell; else null. */
export function loadingEtaMs(fleet: FleetState, endpointId: string, nowMs: number): number | null {
  return estimateStart(fleet, endpointId, nowMs)?.etaMs ?? null;
}

/** What a comment in a stream says while its model starts: `loading phase=pulling eta_s=12`, or only what is known. */
export function loadingComment(fleet: FleetState, endpointId: string, nowMs: number): string {
  const start = estimateStart(fleet, endpointId, nowMs);
  if (start === undefined) return 'loading';
  const eta = start.etaMs === null ? '' : ` eta_s=${Math.ceil(start.etaMs / 1_000)}`;
  return `loading phase=${start.phase}${eta}`;
}
