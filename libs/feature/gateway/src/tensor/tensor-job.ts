import type { ModelJob } from '../frame/model-work.js';

/** One inference that was checked and may be worked on. */
export interface TensorJob extends ModelJob {
  /** What callers know the version by. */
  readonly version: string;
  /** The body as it came: JSON, and binary tensors behind it where `headLength` says where they begin. */
  readonly body: Uint8Array;
  readonly headLength: string | undefined;
  /** Elements of all inputs together. */
  readonly inputElements: number;
}
