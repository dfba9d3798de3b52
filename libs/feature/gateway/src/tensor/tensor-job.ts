import type { Principal } from '@penstock/domain-access';
import type { EndpointState } from '@penstock/domain-catalog';

/** One inference that was checked and may be worked on. */
export interface TensorJob {
  readonly requestId: string;
  readonly principal: Principal;
  readonly batchId: string | null;
  readonly endpoint: EndpointState;
  /** What callers know the version by. */
  readonly version: string;
  /** The body as it came: JSON, and binary tensors behind it where `headLength` says where they begin. */
  readonly body: Uint8Array;
  readonly headLength: string | undefined;
  /** Elements of all inputs together. */
  readonly inputElements: number;
  readonly startedAtMs: number;
  readonly traceparent: string | undefined;
}
