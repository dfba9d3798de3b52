import type { AdmissionReplica, AdmissionSettings } from './admission-state.js';
import { circuitAllows } from './circuit.js';

/** Whether a replica may get a request now. Where probes are sent apart, no request of a tenant goes through a circuit that is not closed. */
export function mayServe({ circuit }: Pick<AdmissionReplica, 'circuit'>, { probesApart }: Pick<AdmissionSettings, 'probesApart'>, nowMs: number): boolean {
  return circuit.phase === 'closed' || (probesApart !== true && circuitAllows(circuit, nowMs));
}
