import type { Lease } from '@penstock/contract-commands';
import type { Refusal } from '@penstock/kernel';

/** What the owner of an endpoint has to do next. Each admission ends in exactly one `grant`, `refuse` or cancellation. */
export type AdmissionEffect =
  | { readonly kind: 'grant'; readonly requestId: string; readonly leaseId: string; readonly lease: Lease }
  | { readonly kind: 'refuse'; readonly requestId: string; readonly leaseId: string; readonly refusal: Refusal }
  /** The first request came to a cold endpoint. Whoever acts on it repeats it while `needsWake` holds. */
  | { readonly kind: 'wake'; readonly endpointId: string; readonly waiting: number }
  /** Requests wait while gateways hold slots ahead of need: they are to give back what they do not use. */
  | { readonly kind: 'recall'; readonly endpointId: string }
  | { readonly kind: 'circuit-opened'; readonly endpointId: string; readonly replicaId: string; readonly reason: string; readonly failures: number; readonly retryAtMs: number }
  | { readonly kind: 'circuit-closed'; readonly endpointId: string; readonly replicaId: string };
